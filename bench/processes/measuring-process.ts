// The parent's half: one process that measures or is measured, so that what it costs is on its own account. What it
// does is in the script; what the two say to each other is in orders.ts.
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import type { Closing } from "./closing.ts";
import type { ChildMessage } from "./orders.ts";

type Waiting = { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void };

export class MeasuringProcess<Order, Result> {
  readonly #child: ChildProcess;
  readonly stop: () => Promise<void>;
  #waiting: Waiting | undefined;

  private constructor(closing: Closing, script: URL, args: readonly string[]) {
    this.#child = fork(script, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const exited = new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
    });
    this.stop = closing.add(async () => {
      this.#child.kill("SIGKILL");
      await exited;
    });
    this.#child.on("message", (message) => this.#settle(message as ChildMessage));
    this.#child.once("error", (error) => this.#waiting?.reject(error));
    this.#child.once("exit", (code, signal) =>
      this.#waiting?.reject(new Error(`${script.pathname} ended by itself (${signal ?? code})`)),
    );
  }

  /** Resolves when the script says that it is ready. */
  static async start<Order, Result>(
    closing: Closing,
    script: URL,
    ...args: string[]
  ): Promise<MeasuringProcess<Order, Result>> {
    const started = new MeasuringProcess<Order, Result>(closing, script, args);
    await new Promise((resolve, reject) => {
      started.#waiting = { resolve, reject };
    });
    return started;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** One order at a time. Rejects with what the child has to say when it could not carry it out. */
  ask(order: Order): Promise<Result> {
    assert(this.#waiting === undefined, "one order at a time");
    return new Promise<Result>((resolve, reject) => {
      this.#waiting = { resolve: resolve as Waiting["resolve"], reject };
      this.#child.send(order as object);
    });
  }

  #settle(message: ChildMessage): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (message.type === "failed") waiting?.reject(new Error(message.message));
    else waiting?.resolve(message.type === "result" ? message.result : undefined);
  }
}
