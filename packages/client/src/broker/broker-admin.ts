// Calls that need a broker's admin token and may take long, because the broker sends nothing before it is done.
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { MeshError } from "@claudemesh/protocol/errors";
import { describeLoss, parseJson, refusalFrom } from "./broker-client.ts";
import { brokerHttpUrl } from "./broker-url.ts";

export type AdminCall = {
  readonly broker: string;
  readonly adminToken: string;
  readonly path: "/v1/admin/sweep" | "/v1/admin/check";
  /** How long the broker may send nothing. */
  readonly timeoutMs: number;
};

/** Much more than any answer has. */
const answerBytesMax = 16 * 1_048_576;

/**
 * The body of the answer; throws a MeshError or BrokerRefusal. A redirect is not followed, so that the token goes to no
 * other address.
 */
export async function callBrokerAdmin(call: AdminCall): Promise<unknown> {
  const url = new URL(brokerHttpUrl(call.broker, call.path));
  let answer: { readonly status: number; readonly text: string };
  try {
    answer = await post(url, call);
  } catch (cause) {
    const why = describeLoss(cause);
    const message = `No answer from the broker at ${call.broker} (${why}); is it running there?`;
    throw new MeshError("broker_unreachable", message, { broker: call.broker, reason: why }, cause);
  }
  const body = parseJson(answer.text);
  if (answer.status === 200) return body;
  throw refusalFrom(answer.status, body);
}

function post(url: URL, { adminToken, timeoutMs }: AdminCall): Promise<{ status: number; text: string }> {
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const headers = { authorization: `Bearer ${adminToken}`, "content-length": "0" };
  return new Promise((resolve, reject) => {
    const request = send(url, { method: "POST", headers, timeout: timeoutMs }, (response) => {
      readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    request.on("timeout", () => request.destroy(new Error("it took too long")));
    request.on("error", reject);
    request.end();
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) throw new Error("the answer is larger than any that is expected");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
