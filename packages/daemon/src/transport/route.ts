// What a route of the local API is: where it stands, what it takes, and the service that it calls. The tables are in the
// files beside this one, each with the part of the API that its handlers need.
import type { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";

export type Answer = {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers?: Readonly<Record<string, string>>;
};

/** For the few answers that are no JSON. */
export type TextAnswer = { readonly status: number; readonly contentType: string; readonly text: string };

export type RouteFacts = {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** What it is for, in the words that /openapi.json shows. */
  readonly summary: string;
  readonly schema: { readonly querystring: object; readonly body?: object; readonly params?: object };
  /** Headers that mean something to this route, for /openapi.json. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What is asked of a body before the handler sees it, where the handler answers for the rest of the schema itself. */
  readonly looserBody?: object;
  /** How deep a body may be nested, where that is more than elsewhere. */
  readonly jsonDepth?: number;
  /** Refused over TCP, with a token or without. */
  readonly unixSocketOnly?: true;
};

type AnsweringRoute<Api> = RouteFacts & {
  readonly handle: (
    api: Api,
    request: FastifyRequest,
    onRefused: OnRefused,
  ) => Answer | TextAnswer | Promise<Answer | TextAnswer>;
};

/** Called for refusals inside an answer; a refusal that is the whole answer is thrown. */
export type OnRefused = (error: MeshError) => void;

/** A route whose answer goes on until one side has enough. It does not count as a request in flight. */
type StreamingRoute<Api> = RouteFacts & {
  /** Throws, or takes the reply over. */
  readonly stream: (api: Api, request: FastifyRequest, reply: FastifyReply) => void;
};

export type Route<Api> = AnsweringRoute<Api> | StreamingRoute<Api>;

export const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });
