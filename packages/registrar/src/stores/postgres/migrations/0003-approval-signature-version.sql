-- What an approval's signature covers: 1, the terms alone, as it was at first; 2, the mesh and a label too. A stored approval
-- is verified by what it was signed over.
ALTER TABLE mesh.registrar_approval ADD COLUMN signature_version integer NOT NULL DEFAULT 1;
