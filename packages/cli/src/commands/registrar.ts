// `claudemesh registrar …`: registering an artifact once, under an owner's approval.

import { type Command, Option } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { parseValidity } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { asMember, readAll, readNames } from "../mesh/member.ts";
import {
  type AuthorizationOptions,
  authorizationOf,
  type EffectOptions,
  effectOf,
  endWith,
  registrarOf,
  withAuthorization,
  withEffect,
} from "../mesh/registrar-access.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "registrar approve": defineApprove,
  "registrar approvals": defineApprovals,
  "registrar revoke": defineRevoke,
  "registrar register": defineRegister,
  "registrar status": defineStatus,
  "registrar attempts": defineAttempts,
  "registrar compensate": defineCompensate,
  "registrar list": defineList,
  "registrar audit": defineAudit,
} satisfies Commands;

type ApproveOptions = EffectOptions & {
  mesh?: string;
  json?: boolean;
  validFor: number;
  purpose: "register" | "compensate";
  key?: string;
  approval?: string;
};

/** An owner's signature under exactly one registration or compensation. */
function defineApprove(command: Command, shell: Shell): void {
  withEffect(withMesh(command))
    .addOption(
      new Option("--valid-for <time>", "how long its nonce is good, such as 30m or 7d")
        .argParser(parseValidity)
        .default(3_600_000, "1h"),
    )
    .addOption(new Option("--purpose <word>", "what it allows").choices(["register", "compensate"]).default("register"))
    .option("--key <key>", "with --purpose compensate: the request that is made good")
    .option("--approval <id>", "an id of your own choice, which nothing else has")
    .action((options: ApproveOptions) => run(shell, options, () => approveEffect(shell, options)));
  examples(
    command,
    "claudemesh registrar approve --operation release --target prod --file dist/app.tgz --run-id 42",
    "claudemesh registrar approve --purpose compensate --key release-42 --operation release --target prod --artifact-hash <hex> --run-id 42",
  );
}

async function approveEffect(shell: Shell, options: ApproveOptions) {
  const { purpose, key, approval, validFor } = options;
  const nowMs = Date.now();
  const registrar = await registrarOf(shell, options);
  const value = await registrar.approve({
    ...(await effectOf(options)),
    ...(approval === undefined ? {} : { approval_id: approval }),
    purpose,
    ...(key === undefined ? {} : { logical_request_key: key }),
    // Clocks differ by a little, and an approval is meant to be good at once.
    not_before: nowMs - 60_000,
    not_after: nowMs + validFor,
  });
  const { approval_id, authorization_nonce } = value;
  const shown =
    authorization_nonce === undefined
      ? "It was approved before, and its nonce is not shown again; revoke it and approve anew if it was lost."
      : `Nonce     ${authorization_nonce}\n${hint(shell, `It is not shown again. Withdraw it with: claudemesh registrar revoke ${approval_id}`)}`;
  return { value, text: `Approval  ${approval_id}\n${shown}` };
}

type Approval = Readonly<Record<"approval_id" | "state" | "purpose" | "operation" | "target" | "run_id", string>> & {
  readonly not_after: number;
};

/** Approvals and what became of them; never a nonce. */
function defineApprovals(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readAll<Approval>(call, "registrar.approvals"),
      );
      const rows = items.map((item) => [
        item.approval_id,
        stateCell(item.state),
        item.purpose,
        item.operation,
        item.target,
        item.run_id,
        timeCell(item.not_after),
      ]);
      const header = ["APPROVAL", "STATE", "PURPOSE", "OPERATION", "TARGET", "RUN", "GOOD UNTIL"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar approvals", "claudemesh registrar approvals --json");
}

/** The nonce of an approval is good for nothing any more; what it was spent on stays. */
function defineRevoke(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<approval>", "id of the approval")
    .action((approval: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The approval ${approval} will be good for nothing any more.`);
        const registrar = await registrarOf(shell, options);
        const value = await registrar.revoke(approval);
        const spent = value.state === "spent" ? " It had been spent before, and what it registered stays." : "";
        return { value, text: `The approval ${approval} is revoked.${spent}` };
      }),
    );
  examples(command, "claudemesh registrar revoke release-42");
}

type RegisterOptions = EffectOptions &
  AuthorizationOptions & { mesh?: string; json?: boolean; key: string; attempt?: string; expiresIn?: number };

/** One artifact, once. The same command again, after whatever happened, is safe. */
function defineRegister(command: Command, shell: Shell): void {
  withEffect(withMesh(command)).requiredOption("--key <key>", "names this registration, the same in every retry");
  withAuthorization(command, shell, "the owner's approval")
    .option("--attempt <id>", "a name for this execution (default: a new one)")
    .option("--expires-in <time>", "refuse it after so long, such as 10m", parseValidity)
    .action((options: RegisterOptions) =>
      run(shell, options, async () => {
        const { key, attempt, expiresIn } = options;
        const registrar = await registrarOf(shell, options);
        return endWith(
          shell,
          await registrar.register({
            ...(await effectOf(options)),
            logical_request_key: key,
            ...authorizationOf(shell, options),
            ...(attempt === undefined ? {} : { attempt_id: attempt }),
            ...(expiresIn === undefined ? {} : { expires_at: Date.now() + expiresIn }),
          }),
        );
      }),
    );
  examples(
    command,
    "claudemesh registrar register --key release-42 --approval <id> --operation release --target prod --file dist/app.tgz --run-id 42",
  );
  command.addHelpText(
    "after",
    "\nExit codes: 0 registered and verified, 1 refused or verification failed, 4 taken by something else, 6 not verified yet.",
  );
}

/** What became of a request, for a caller that does not know. */
function defineStatus(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<key>", "the request's key")
    .action((key: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const registrar = await registrarOf(shell, options);
        const value = await registrar.status(key);
        const { registration, attempts, state, verification, compensation } = value;
        const lines = [
          `State         ${state}`,
          ...(registration === undefined
            ? ["Nothing was committed under this key: the request may be made, or made again."]
            : [
                `Registration  ${registration.registration_id}`,
                `Effect        ${registration.operation} ${registration.target} (run ${registration.run_id})`,
                `Artifact      ${registration.artifact_hash}`,
                `Attempts      ${attempts.recorded}, retries ${attempts.retries}`,
                ...(verification?.reasons ?? []).map((reason) => `Failed        ${reason} (${verification?.verifier})`),
                ...(compensation === undefined ? [] : [`Made good     under approval ${compensation.approval_id}`]),
              ]),
        ];
        return { value, text: lines.join("\n") };
      }),
    );
  examples(command, "claudemesh registrar status release-42", "claudemesh registrar status release-42 --json");
}

type Attempt = {
  readonly attempt_id: string | null;
  readonly member_pubkey: string;
  readonly won: boolean;
  readonly tries: number;
  readonly first_at: number;
  readonly last_at: number;
};

/** The attempt that won, and who came back after it. */
function defineAttempts(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<key>", "the request's key")
    .action((key: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const registrar = await registrarOf(shell, options);
        const value = await registrar.attempts(key);
        const nameOf = await readNames(shell, pathsFor(shell, options), options);
        const rows = (value.items as readonly Attempt[]).map((attempt) => [
          attempt.attempt_id ?? "(further ones)",
          attempt.won ? "won" : "retry",
          String(attempt.tries),
          timeCell(attempt.first_at),
          timeCell(attempt.last_at),
          nameOf(attempt.member_pubkey),
        ]);
        const header = ["ATTEMPT", "", "TRIES", "FIRST", "LAST", "MEMBER"];
        return { value, text: formatTable(header, rows, shell.columns) };
      }),
    );
  examples(command, "claudemesh registrar attempts release-42");
}

type CompensateOptions = AuthorizationOptions &
  Confirmable & { mesh?: string; json?: boolean; key?: string; attempt?: string };

/** Records, once, that a registration whose verification failed was made good. */
function defineCompensate(command: Command, shell: Shell): void {
  withYes(withAuthorization(withMesh(command), shell, "an approval with the purpose compensate for this key"))
    .argument("[key]", "the request that is made good")
    .option("--key <key>", "the same, as an option")
    .option("--attempt <id>", "a name for this execution (default: a new one)")
    .action((word: string | undefined, options: CompensateOptions) => {
      const key = word ?? options.key;
      if (key === undefined) command.error("error: say which request: its key is missing");
      return run(shell, options, async () => {
        await confirm(shell, options, `${key} will be recorded as made good, once and for all.`);
        const authorization = authorizationOf(shell, options);
        const registrar = await registrarOf(shell, options);
        const value = await registrar.compensate(key, authorization, options.attempt);
        return { value, text: `${key} is compensated. Its effect stays taken: doing it again needs a new run.` };
      });
    });
  examples(command, "claudemesh registrar compensate release-42 --approval <id>");
}

type Listed = {
  readonly state: string;
  readonly registration: Readonly<Record<"logical_request_key" | "operation" | "target" | "run_id", string>> & {
    readonly artifact_hash: string;
    readonly registered_at: number;
  };
};

/** Every registration of the mesh, in order. */
function defineList(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readAll<Listed>(call, "registrar.registrations"),
      );
      const rows = items.map(({ state, registration }) => [
        timeCell(registration.registered_at),
        stateCell(state),
        registration.logical_request_key,
        registration.operation,
        registration.target,
        registration.run_id,
        registration.artifact_hash.slice(0, 12),
      ]);
      const header = ["REGISTERED", "STATE", "KEY", "OPERATION", "TARGET", "RUN", "ARTIFACT"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar list", "claudemesh registrar list --json");
}

type Refusal = {
  readonly kind: "refusal" | "summary";
  readonly at: number;
  readonly member_pubkey: string;
  readonly code?: string;
  readonly conflict?: string;
  readonly logical_request_key?: string;
  readonly approval_id?: string;
  readonly suppressed?: number;
};

/** What was refused, to whom, and what was only counted. */
function defineAudit(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const items = await asMember(shell, paths, (call) => readAll<Refusal>(call, "registrar.audit"));
      const nameOf = await readNames(shell, paths, options);
      const rows = items.map((entry) => [
        timeCell(entry.at),
        entry.kind === "summary" ? `${entry.suppressed} more refusals` : (entry.code ?? ""),
        entry.conflict ?? "",
        entry.logical_request_key ?? "",
        entry.approval_id ?? "",
        nameOf(entry.member_pubkey),
      ]);
      const header = ["AT", "REFUSED", "CONFLICT", "KEY", "APPROVAL", "MEMBER"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar audit", "claudemesh registrar audit --json");
}
