// Chance as Node gives it; a simulated mesh brings its own.
import { randomBytes } from "node:crypto";
import type { Chance } from "./ports.ts";

export const systemChance: Chance = { random: Math.random, randomBytes, nextTurn: setImmediate };
