// The child's half of a measuring process: takes orders from the parent one at a time, and ends when the parent does.
import process from "node:process";

export type ChildMessage =
  | { readonly type: "ready" }
  | { readonly type: "result"; readonly result: unknown }
  | { readonly type: "failed"; readonly message: string };

function tell(message: ChildMessage): void {
  process.send?.(message);
}

export function announceReady(): void {
  process.once("disconnect", () => process.exit(0));
  tell({ type: "ready" });
}

export function serveOrders<Order, Result>(carryOut: (order: Order) => Result | Promise<Result>): void {
  process.on("message", async (order: Order) => {
    try {
      tell({ type: "result", result: await carryOut(order) });
    } catch (error) {
      tell({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    }
  });
  announceReady();
}
