// What the compiler leaves undone in emitted files: references to TypeScript files outside import statements. Pure.

const declarationImport = /((?:\bfrom\s*|\bimport\s*\(?\s*)["'])(\.{1,2}\/[^"']*)(?<!\.d)\.ts(["'])/g;
const fileUrl = /(new URL\(\s*["'])(\.{1,2}\/[^"']*)(?<!\.d)\.ts(["']\s*,\s*import\.meta\.url\s*,?\s*\))/g;
const strayReference = /["'`](\.{1,2}\/[^"'`\n]*(?<!\.d)\.ts)["'`]/;

/** Declarations keep the `.ts` of their relative imports; a published package has no such files. */
export function finishDeclaration(text: string): string {
  return text.replace(declarationImport, "$1$2.js$3");
}

/** `new URL("./worker.ts", import.meta.url)` names a file at run time, so it follows the file to its new name. */
export function finishCode(text: string): string {
  return text.replace(fileUrl, "$1$2.js$3");
}

/** A relative path to a TypeScript file that is still there and would lead nowhere once published. */
export function findStrayReference(text: string): string | undefined {
  return strayReference.exec(text)?.[1];
}
