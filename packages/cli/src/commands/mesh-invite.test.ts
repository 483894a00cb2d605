// Invites from the command line: made, listed, revoked, against a real broker.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { afterEach, describe, expect, test } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership, joinMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

async function runIn(home: string, path: string, ...args: string[]) {
  process.exitCode = undefined;
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync([...path.split(" "), ...args], { from: "user" });
  return { code: process.exitCode ?? 0, out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

async function runJson(home: string, path: string, ...args: string[]) {
  const { code, out } = await runIn(home, path, ...args, "--json");
  return { code, value: JSON.parse(out) as Record<string, unknown> };
}

async function startOwner() {
  const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  return home;
}

describe("claudemesh mesh invite", () => {
  test("makes an invite that is listed, and revoked as often as one likes", async () => {
    const home = await startOwner();
    const { value: made } = await runJson(home, "mesh invite");
    const id = String(made.invite_id);
    const listed = await runJson(home, "mesh invite list");
    expect(listed.value.items).toMatchObject([{ invite_id: id, state: "live", used_by: null }]);
    const revoked = { code: 0, value: { invite_id: id, revoked: true } };
    for (let again = 0; again < 2; again++) expect(await runJson(home, "mesh invite revoke", id)).toEqual(revoked);
    const joining = joinMembership(makeTemporaryFolder(), decodeInvite(String(made.invite)), "bob");
    await expect(joining).rejects.toMatchObject({ code: "invite_refused" });
    const table = (await runIn(home, "mesh invite list")).out;
    expect(table).toMatch(/INVITE ID +STATE +NAME +CREATED +EXPIRES +USED BY/);
    expect(table).toMatch(new RegExp(`${id} +revoked `));
  });

  test("says in its lines how to revoke it, the invite being the first", async () => {
    const home = await startOwner();
    const lines = (await runIn(home, "mesh invite")).out.split("\n");
    const [line = "", where = "", last = ""] = [lines[0], lines[1], lines.at(-1)];
    expect(decodeInvite(line).mesh).toBe("acme");
    expect(where).toBe(`It leads to ${decodeInvite(line).broker}.`);
    const id = last.split(" ").at(-1) ?? "";
    expect(last).toBe(`Revoke it with: claudemesh mesh invite revoke ${id}`);
    expect((await runIn(home, "mesh invite revoke", id)).out).toBe(`${id} is revoked.`);
  });

  test("fixes the joiner's name, which the home takes by itself; a name that is taken is none to fix", async () => {
    const home = await startOwner();
    const { value: made } = await runJson(home, "mesh invite", "--name", "worker-1");
    expect(made).toMatchObject({ name: "worker-1" });
    expect((await runIn(home, "mesh invite list")).out).toMatch(/live +worker-1 /);
    const invite = join(makeTemporaryFolder(), "invite.txt");
    writeFileSync(invite, `${made.invite}\n`);
    const other = makeTemporaryFolder();
    expect(await runJson(other, "mesh join", "--invite-file", invite, "--name", "bob")).toMatchObject({
      code: 4,
      value: { error: "invite_names_another", name: "worker-1" },
    });
    expect(await runJson(other, "mesh join", "--invite-file", invite)).toMatchObject({
      code: 0,
      value: { name: "worker-1" },
    });
    expect(await runJson(home, "mesh invite", "--name", "WORKER-1")).toMatchObject({
      code: 4,
      value: { error: "name_taken" },
    });
  });

  test("that was used ends its revocation with a conflict that names the member", async () => {
    const home = await startOwner();
    const { value: made } = await runJson(home, "mesh invite");
    const { member_pubkey } = await joinMembership(makeTemporaryFolder(), decodeInvite(String(made.invite)), "bob");
    const refused = await runJson(home, "mesh invite revoke", String(made.invite_id));
    expect(refused).toMatchObject({ code: 4, value: { error: "invite_used", used_by: member_pubkey } });
  });

  test("is for owners, and one that is not there is not found", async () => {
    const home = await startOwner();
    const { value: made } = await runJson(home, "mesh invite");
    const other = makeTemporaryFolder();
    await joinMembership(other, decodeInvite(String(made.invite)), "bob");
    expect(await runJson(other, "mesh invite list")).toMatchObject({ code: 1, value: { error: "forbidden" } });
    const nobodys = "0198c0de-0000-7000-8000-000000000000";
    expect(await runJson(home, "mesh invite revoke", nobodys)).toMatchObject({
      code: 5,
      value: { error: "not_found" },
    });
  });
});
