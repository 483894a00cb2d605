// The doctor's judgement of one mesh's folder: files, settings, keys, host, lock, outbox. The daemon and the broker are
// judged in connection-checks.ts. Pure; the facts come from gather.ts.
import type { Judgement, MeshFindings } from "./findings.ts";
import { judgeFile, showBytes } from "./home-checks.ts";

const warnShare = 0.8;
const refuseShare = 0.95;

export function judgeFolder(facts: MeshFindings): Judgement[] {
  return [
    ...judgeFiles(facts),
    judgeSettings(facts),
    judgeKeys(facts),
    ...(isEphemeral(facts) ? [] : [judgeHost(facts)]),
    judgeOutbox(facts),
  ];
}

/** Its keys are in the memory of the daemon that runs, and nowhere else. */
function isEphemeral({ keys, daemon }: MeshFindings): boolean {
  return keys === "absent" && daemon.type === "answers";
}

function judgeFiles({ files, dir }: MeshFindings): Judgement[] {
  const wrong = files.flatMap((file) => judgeFile(file, "files") ?? []);
  if (wrong.length > 0) return wrong;
  return [{ check: "files", status: "ok", means: `${files.length} files and folders in ${dir}, all yours alone.` }];
}

function judgeSettings({ folder, membership, dir }: MeshFindings): Judgement {
  const check = "settings";
  const fix = `correct ${dir}/config.toml`;
  if (folder.settings.type === "refused") return { check, status: "fail", means: folder.settings.problem, fix };
  if (membership !== "readable") return { check, status: "fail", means: membership.problem, fix };
  return { check, status: "ok", means: "config.toml is understood." };
}

function judgeKeys(facts: MeshFindings): Judgement {
  const check = "keys";
  const { keys, mesh } = facts;
  if (keys === "readable") return { check, status: "ok", means: "The key file is whole." };
  if (isEphemeral(facts)) return { check, status: "ok", means: "The daemon is ephemeral: its keys are in memory." };
  const fix = "claudemesh mesh join <invite>";
  if (keys === "absent") return { check, status: "fail", means: `This home has no keys for ${mesh}.`, fix };
  return { check, status: "fail", means: keys.problem, fix };
}

function judgeHost({ folder, mesh, platform }: MeshFindings): Judgement {
  const check = "host";
  const accept = `claudemesh daemon accept-host --mesh ${mesh}`;
  switch (folder.host) {
    case "same":
      return { check, status: "ok", means: "The keys belong to this host." };
    case "not recorded":
      return { check, status: "ok", means: "The first start will write down this host." };
    case "unknown":
      return {
        check,
        status: "warn",
        means: "Nothing tells this host from another, so that a copy of this home would not be noticed.",
        ...(platform === "linux" ? { fix: "sudo systemd-machine-id-setup" } : {}),
      };
    case "unreadable":
      return { check, status: "fail", means: "host_fingerprint.json cannot be read; no daemon starts.", fix: accept };
    case "changed": {
      const policy = folder.settings.type === "readable" ? folder.settings.clonePolicy : "refuse";
      return {
        check,
        status: policy === "refuse" ? "fail" : "warn",
        means: `The keys were used on another host${policy === "refuse" ? "; no daemon starts" : ""}.`,
        fix: `${accept} (the other is gone), or claudemesh daemon remint --mesh ${mesh} --invite <invite> (it lives on)`,
      };
    }
  }
}

function judgeOutbox(facts: MeshFindings): Judgement {
  const check = "outbox";
  const { outbox } = facts.folder;
  const recover = `claudemesh daemon recover --mesh ${facts.mesh}`;
  switch (outbox.type) {
    case "absent":
      // That of an ephemeral daemon lies elsewhere.
      if (isEphemeral(facts)) return judgeOutboxSize(facts, 0);
      return { check, status: "ok", means: "There is none yet." };
    case "recovery cut off":
      return { check, status: "fail", means: "A recovery was cut off; no daemon starts.", fix: recover };
    case "damaged":
      return { check, status: "fail", means: `outbox.db is damaged: ${outbox.problem}.`, fix: recover };
    case "unreadable": {
      const means = `outbox.db cannot be looked at: ${outbox.problem}. That says nothing about what is in it.`;
      return { check, status: "fail", means, fix: "look after the disk: is there room, does it fail reads?" };
    }
    case "in use":
    case "sound":
      return judgeOutboxSize(facts, outbox.bytes);
  }
}

/** A running daemon knows how much of the file is used; else its size has to do. */
function judgeOutboxSize({ daemon, folder, mesh }: MeshFindings, fileBytes: number): Judgement {
  const check = "outbox";
  const health = daemon.type === "answers" ? readOutboxHealth(daemon.health) : undefined;
  const maxBytes =
    health?.maxBytes ?? (folder.settings.type === "readable" ? folder.settings.outboxMaxBytes : undefined);
  const usedBytes = health?.usedBytes ?? fileBytes;
  if (maxBytes === undefined) return { check, status: "ok", means: `${showBytes(usedBytes)} are used.` };
  const means = `${showBytes(usedBytes)} of ${showBytes(maxBytes)} are used.`;
  if (usedBytes < maxBytes * warnShare) return { check, status: "ok", means };
  const isFull = usedBytes >= maxBytes * refuseShare;
  return {
    check,
    code: "outbox_full",
    status: isFull ? "fail" : "warn",
    means: isFull ? `${means} Done rows make room for new sends, which are refused once none is left.` : means,
    fix: `claudemesh daemon outbox prune --older-than-days 7 --mesh ${mesh}, or raise [outbox] max_bytes`,
  };
}

function readOutboxHealth(health: unknown): { usedBytes: number; maxBytes: number } | undefined {
  const { outbox } = (health ?? {}) as { outbox?: { used_bytes?: unknown; max_bytes?: unknown } };
  const { used_bytes: usedBytes, max_bytes: maxBytes } = outbox ?? {};
  return typeof usedBytes === "number" && typeof maxBytes === "number" ? { usedBytes, maxBytes } : undefined;
}
