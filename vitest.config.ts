// Which test files belong to which run. The suffix says what a test needs and how long it may take:
// .test.ts (fast), .pg.test.ts and .redis.test.ts (a real server), .deep.test.ts and .soak.test.ts
// (seeded, long). tests/ holds whole-process tests. `npm run check` refuses a test file that no project collects.
// Why: docs/decisions/0008.
import { defineConfig } from "vitest/config";

const long = ["**/*.deep.test.ts", "**/*.soak.test.ts"];
// Local times are shown to people, and tests read them.
const base = { env: { TZ: "UTC" }, pool: "forks" as const, testTimeout: 30_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    // Two, also on two cores: most tests wait for a disk or for another process.
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...base,
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
          exclude: long,
        },
      },
      {
        test: {
          ...base,
          name: "system",
          include: ["tests/**/*.test.ts"],
          exclude: long,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          ...base,
          name: "deep",
          include: ["{packages,tests,bench,scripts}/**/*.deep.test.ts"],
          testTimeout: 480_000,
        },
      },
      {
        test: {
          ...base,
          name: "soak",
          include: ["{packages,tests}/**/*.soak.test.ts"],
          testTimeout: 7_200_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
