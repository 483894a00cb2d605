import { expect, it } from "vitest";
import { exitCodeOfEnd } from "./daemon-end.ts";

it("a replaced daemon ends with a code after which no service manager starts it again, others so that they are", () => {
  for (const reason of ["replaced_by_newer", "older_connection_kept"]) {
    expect(exitCodeOfEnd({ exitCode: 1, reason }, {})).toBe(4);
    expect(exitCodeOfEnd({ exitCode: 1, reason }, { CLAUDEMESH_REPLACED_EXIT: "0" })).toBe(0);
  }
  expect(exitCodeOfEnd({ exitCode: 1, reason: "disk_full" }, { CLAUDEMESH_REPLACED_EXIT: "0" })).toBe(1);
  expect(exitCodeOfEnd({ exitCode: 0, reason: "stopped" }, {})).toBe(0);
});
