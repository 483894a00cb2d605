// What the registrar's commands share: the client of this home's member, the options that name an effect, and how a
// request's state ends the command.
import { hashArtifact } from "@claudemesh/client/hash-artifact";
import { readMeshConfig } from "@claudemesh/client/home";
import type { ArtifactEffect, Authorization, RegistrarClient, RequestAnswer } from "@claudemesh/client/registrar";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import type { Outcome } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { readSecret } from "../input/secret-input.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { homeTrust } from "./member.ts";

export async function registrarOf(shell: Shell, options: { readonly mesh?: string }): Promise<RegistrarClient> {
  const [{ connectingCall }, { identityOf, readKeyFile, signerOf }, { createRegistrarClient }] = await Promise.all([
    import("@claudemesh/client/broker"),
    import("@claudemesh/client/keys"),
    import("@claudemesh/client/registrar"),
  ]);
  const paths = pathsFor(shell, options);
  const config = readMeshConfig(paths);
  const { broker, id } = config;
  const keys = readKeyFile(paths.keypair);
  const agent = `claudemesh-cli/${shell.version}`;
  const trust = await homeTrust(shell, paths, config);
  return createRegistrarClient({
    call: connectingCall({ broker, identity: identityOf(keys, id), agent, trust }),
    sign: signerOf(keys),
    meshId: id,
  });
}

export type EffectOptions = {
  readonly operation: string;
  readonly target: string;
  readonly runId: string;
  readonly artifactHash?: string;
  readonly file?: string;
};

export function withEffect(command: Command): Command {
  return command
    .requiredOption("--operation <text>", "what is done with the artifact, such as release")
    .requiredOption("--target <text>", "what it is done to, such as prod")
    .requiredOption("--run-id <text>", "the run that it belongs to, such as a build's number")
    .option("--artifact-hash <hex>", "SHA-256 of the artifact's bytes")
    .option("--file <path>", "the artifact itself, to be hashed here")
    .hook("preAction", (self) => {
      const { artifactHash, file } = self.opts<Partial<EffectOptions>>();
      if (artifactHash === undefined && file === undefined) self.error("error: give --artifact-hash or --file");
    });
}

export async function effectOf(options: EffectOptions): Promise<ArtifactEffect> {
  const { operation, target, runId: run_id, artifactHash = "", file } = options;
  const artifact_hash = file === undefined ? artifactHash : await hashOf(file);
  if (artifactHash !== "" && artifactHash !== artifact_hash) {
    throw new MeshError("invalid_request", `${file} has the hash ${artifact_hash}, not the one that is given.`);
  }
  return { operation, target, artifact_hash, run_id };
}

async function hashOf(file: string): Promise<string> {
  try {
    return await hashArtifact(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "EISDIR" ? "it is a folder; pack it first" : (code ?? String(error));
    throw new Error(`The artifact ${file} cannot be read: ${why}. Name a file that exists with --file.`);
  }
}

export type AuthorizationOptions = { readonly approval: string; readonly nonce?: string; readonly nonceFile?: string };

export function withAuthorization(command: Command, shell: Shell, approval: string): Command {
  return command
    .requiredOption("--approval <id>", approval)
    .option("--nonce <nonce>", "its nonce; - is standard input (or CLAUDEMESH_REGISTRAR_NONCE)")
    .option("--nonce-file <path>", "a file that holds the nonce")
    .hook("preAction", (self) => {
      const { nonce = shell.env.CLAUDEMESH_REGISTRAR_NONCE, nonceFile } = self.opts<Partial<AuthorizationOptions>>();
      if (!nonce && nonceFile === undefined) {
        self.error("error: give the nonce in CLAUDEMESH_REGISTRAR_NONCE, with --nonce-file <path> or with --nonce -");
      }
    });
}

/** The nonce from standard input, its file or the environment, or as it is given. */
export function authorizationOf(shell: Shell, { approval, nonce, nonceFile }: AuthorizationOptions): Authorization {
  const sources = { what: "the nonce", given: nonce, file: nonceFile, fileOption: "--nonce-file" };
  const text = readSecret(shell, { ...sources, env: "CLAUDEMESH_REGISTRAR_NONCE" });
  return { approval_id: approval, authorization_nonce: text ?? "" };
}

/** 0 where the request is registered and closed, 1 where it failed, 6 where that is not known yet. */
export function endWith(shell: Shell, answer: RequestAnswer): Outcome {
  const { registration, state, duplicate } = answer;
  const { registration_id, logical_request_key: key } = registration;
  const what = {
    unknown: "Nothing is registered",
    inert: hint(shell, "Registered and not verified yet; ask again with: claudemesh registrar status"),
    registered_closed: duplicate ? "Was registered before" : "Registered",
    verify_failed: "Registered, and its verification failed; only a compensation is possible",
    compensated: "Registered, failed its verification, and was compensated",
  }[state];
  if (state === "inert") process.exitCode = exitCodes.busy;
  else if (state !== "registered_closed") process.exitCode = exitCodes.failed;
  return { value: answer, text: `${what}: ${key} (${registration_id}).` };
}
