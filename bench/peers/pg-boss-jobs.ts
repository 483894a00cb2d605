// Jobs of pg-boss, taken and completed by so many workers in this process. Argument: the address of its PostgreSQL.
import process from "node:process";
import { PgBoss } from "pg-boss";
import { benchBody } from "../broker/bench-meshes.ts";
import { type JobsOrder, type JobsResult, nothingDone, workForAWhile } from "../load/job-workers.ts";
import { serveOrders } from "../processes/orders.ts";

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error("give the address of a PostgreSQL");
const queue = "jobs";
const jobsPerInsert = 1_000;
const boss = new PgBoss({ connectionString: url, max: 20, supervise: false, schedule: false });
boss.on("error", () => undefined);
await boss.start();
await boss.createQueue(queue);

async function fill(jobs: number): Promise<void> {
  for (let made = 0; made < jobs; made += jobsPerInsert) {
    const count = Math.min(jobsPerInsert, jobs - made);
    await boss.insert(
      queue,
      Array.from({ length: count }, () => ({ data: { body: benchBody } })),
    );
  }
}

async function fetchAndComplete(batchSize: number): Promise<number> {
  const jobs = await boss.fetch(queue, { batchSize });
  if (jobs.length === 0) return 0;
  await boss.complete(
    queue,
    jobs.map(({ id }) => id),
  );
  return jobs.length;
}

serveOrders<JobsOrder, JobsResult>(async (order) => {
  if (order.do === "work") return workForAWhile(order, fetchAndComplete);
  if (order.do === "fill") await fill(order.jobs);
  else await boss.stop({ graceful: false, close: true });
  return nothingDone;
});
