// Traps instead of everything that would let the real world into a run: clocks, chance, timers, sockets. The code that
// steps into one is named. For tests, around a run; the simulator's own loop has its way round before they are set.
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import timersPromises from "node:timers/promises";

type Trap = { readonly name: string; readonly holder: object; readonly key: string };

const traps: readonly Trap[] = [
  { name: "Date.now", holder: Date, key: "now" },
  { name: "Math.random", holder: Math, key: "random" },
  { name: "performance.now", holder: performance, key: "now" },
  { name: "setTimeout", holder: globalThis, key: "setTimeout" },
  { name: "setInterval", holder: globalThis, key: "setInterval" },
  { name: "setImmediate", holder: globalThis, key: "setImmediate" },
  { name: "crypto.randomBytes", holder: crypto, key: "randomBytes" },
  { name: "crypto.randomUUID", holder: crypto, key: "randomUUID" },
  { name: "timers/promises setTimeout", holder: timersPromises, key: "setTimeout" },
  { name: "timers/promises setImmediate", holder: timersPromises, key: "setImmediate" },
  { name: "net.Socket.connect", holder: net.Socket.prototype, key: "connect" },
  { name: "net.Server.listen", holder: net.Server.prototype, key: "listen" },
];

/** Runs it with traps all around; returns what stepped into them. */
export async function amongTraps<T>(run: () => Promise<T>): Promise<{ result: T; sprung: readonly string[] }> {
  const sprung: string[] = [];
  const real = traps.map(({ holder, key }) => Object.getOwnPropertyDescriptor(holder, key));
  for (const { name, holder, key } of traps) {
    const value = () => {
      sprung.push(name);
      throw new Error(`a simulated run reached for the real ${name}`);
    };
    Object.defineProperty(holder, key, { value, configurable: true, writable: true });
  }
  syncBuiltinESMExports();
  try {
    return { result: await run(), sprung };
  } finally {
    for (const [index, { holder, key }] of traps.entries()) {
      const descriptor = real[index];
      if (descriptor !== undefined) Object.defineProperty(holder, key, descriptor);
    }
    syncBuiltinESMExports();
  }
}
