import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { setTomlSection } from "./toml-section.ts";

const values = { id: "1", broker: "ws://new" };

describe("setTomlSection", () => {
  it("writes the section into an empty text", () => {
    expect(setTomlSection("", "mesh", values)).toBe('[mesh]\nid = "1"\nbroker = "ws://new"\n');
  });

  it("adds the section and leaves what is there byte for byte", () => {
    const text = "# mine\n[outbox]\nmax_bytes = 1_000 # small\n";
    expect(setTomlSection(text, "mesh", values)).toBe(`${text}\n[mesh]\nid = "1"\nbroker = "ws://new"\n`);
  });

  it("changes the keys it names and keeps comments, other keys and other sections", () => {
    const text =
      '[ipc]\ntcp_enabled = true\n\n[mesh] # which\n# where\nbroker = "ws://old"\nextra = 7\n\n[inbox]\n# days\n';
    expect(setTomlSection(text, "mesh", values)).toBe(
      '[ipc]\ntcp_enabled = true\n\n[mesh] # which\nid = "1"\n# where\nbroker = "ws://new"\nextra = 7\n\n[inbox]\n# days\n',
    );
  });

  it("gives the same text again when nothing changes", () => {
    const text = setTomlSection("", "mesh", values);
    expect(setTomlSection(text, "mesh", values)).toBe(text);
  });

  it.each([
    ["an inline table", 'mesh = { broker = "ws://old", extra = 7 }\n[outbox]\nmax_bytes = 1\n'],
    ["dotted keys", 'mesh.broker = "ws://old"\nmesh.extra = 7\n[outbox]\nmax_bytes = 1\n'],
    ["a quoted header", '["mesh"]\nbroker = "ws://old"\nextra = 7\n[outbox]\nmax_bytes = 1\n'],
    ["a quoted key", '[mesh]\n"broker" = "ws://old"\nextra = 7\n[outbox]\nmax_bytes = 1\n'],
  ])("says the right thing where the section is written as %s", (_, text) => {
    expect(parse(setTomlSection(text, "mesh", values))).toEqual({
      mesh: { ...values, extra: 7 },
      outbox: { max_bytes: 1 },
    });
  });

  it("is not misled by a header inside a multi-line text", () => {
    const text = "[notes]\ntext = '''\n[mesh]\nbroker = \"x\"\n'''\n";
    expect(parse(setTomlSection(text, "mesh", values))).toEqual({
      notes: { text: '[mesh]\nbroker = "x"\n' },
      mesh: values,
    });
  });

  it("escapes what a text may hold", () => {
    const odd = { id: 'a "quoted" \\ line\nand = [another]' };
    expect(parse(setTomlSection("", "mesh", odd))).toEqual({ mesh: odd });
  });
});
