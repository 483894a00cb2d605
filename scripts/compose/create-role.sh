#!/bin/sh
# The PostgreSQL image runs this once, as its superuser, when its volume is new. The brokers get a role that owns their
# database and nothing else: as a superuser they could pass the triggers that keep records as they were written.
# Why: docs/decisions/0149.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$MESH_DB_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE mesh LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE mesh OWNER mesh;
REVOKE ALL ON DATABASE mesh FROM PUBLIC;
SQL
