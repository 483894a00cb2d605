import { isName } from "@claudemesh/protocol/messages/names";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readerNameOf } from "./reader-name.ts";

test("a reader is named by its folder and its program, the same after every restart", () => {
  expect(readerNameOf("/srv/one/web", "Claude Code")).toMatch(/^web-claude-code-[0-9a-f]{8}$/);
  expect(readerNameOf("/srv/one/web", "Claude Code")).toBe(readerNameOf("/srv/one/web", "Claude Code"));
  expect(readerNameOf("/srv/two/web", "Claude Code")).not.toBe(readerNameOf("/srv/one/web", "Claude Code"));
  expect(readerNameOf("/srv/one/web", "codex")).not.toBe(readerNameOf("/srv/one/web", "Claude Code"));
});

test("every folder and every program give a name that the daemon takes", () => {
  expect(readerNameOf("/", "")).toMatch(/^root-agent-/);
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (folder, program) => {
      expect(isName(readerNameOf(folder, program))).toBe(true);
    }),
  );
});
