// The tools of tools.ts over the Model Context Protocol on standard input and output. Checks every input against its
// schema; a refusal or an absent daemon is an answer that the agent can read, never a broken connection.

import { createDaemonClient } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { createSchemaCompiler, type Validator } from "@claudemesh/http/validation";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
  type CallToolRequest,
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { failureOf } from "../failure.ts";
import { jsonText, neutraliseLine } from "../output/printable.ts";
import type { Shell } from "../shell.ts";
import { createInboxTools } from "./inbox-tools.ts";
import { createProgress } from "./progress.ts";
import { readerNameOf } from "./reader-name.ts";
import { createSpaceTools } from "./space-tools.ts";
import { tools as daemonTools, type Tool, type ToolResult, withNotice } from "./tools.ts";

/** Longer than the longest wait that a tool offers. */
const callTimeoutMs = 330_000;

/** The method alone: the server refuses parameters that are malformed by their own code, where this one would be an internal error. */
const callToolSchema = CallToolRequestSchema.pick({ method: true }).loose();

/** Resolves when the host closes the connection. */
export async function serveMcp(shell: Shell, paths: MeshPaths, reader?: string): Promise<void> {
  const daemon = createDaemonClient({ socketPath: paths.sock, timeoutMs: callTimeoutMs });
  const server = new Server({ name: "claudemesh", version: shell.version }, { capabilities: { tools: {} } });
  const readerName = () => reader ?? readerNameOf(process.cwd(), server.getClientVersion()?.name ?? "");
  const tools = [...daemonTools, ...createInboxTools(readerName), ...createSpaceTools(shell, paths)];
  const compile = createSchemaCompiler();
  const known = new Map<string, { readonly tool: Tool; readonly refuse: Validator }>(
    tools.map((tool) => [tool.name, { tool, refuse: compile(tool.inputSchema) }]),
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(describeTool) }));
  server.setRequestHandler(callToolSchema, async (request, { signal, sendNotification, _meta }) => {
    const params = request.params as CallToolRequest["params"];
    const found = known.get(params.name);
    if (found === undefined) {
      const name = neutraliseLine(params.name.slice(0, 128));
      throw new McpError(ErrorCode.InvalidParams, `There is no tool "${name}"; tools/list says which there are.`);
    }
    const input = params.arguments ?? {};
    const wrong = found.refuse(input);
    if (wrong !== undefined) return content(refusal(wrong, paths));
    const progressToken = _meta?.progressToken;
    const reportProgress = createProgress(
      progressToken === undefined
        ? undefined
        : (progress) => sendNotification({ method: "notifications/progress", params: { progressToken, ...progress } }),
    );
    try {
      return content(await found.tool.run(daemon, input as never, { signal, reportProgress }));
    } catch (error) {
      return content(withNotice(refusal(error, paths)));
    }
  });
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
  });
  process.stdin.once("end", () => void server.close());
  await server.connect(new StdioServerTransport());
  await closed;
  daemon.close();
}

function describeTool(tool: Tool) {
  const { name, description, inputSchema, readOnly } = tool;
  return { name, description, inputSchema: inputSchema as { type: "object" }, annotations: { readOnlyHint: readOnly } };
}

function refusal(error: unknown, paths: MeshPaths): ToolResult {
  return { text: jsonText(failureOf(error, paths).body, 2), isError: true };
}

function content({ text, isError }: ToolResult) {
  return { content: [{ type: "text" as const, text }], isError };
}
