// The options of areas that test a broker: its address, and how the kit gets a mesh with members.
import type { OptionSpec } from "../frame/options.ts";

export const meshOptions: readonly OptionSpec[] = [
  { flag: "url", value: "<url>", help: "where it serves: http://host:port (needed)" },
  {
    flag: "admin-token",
    value: "<token>",
    help: "the broker's admin token: the kit makes a mesh of its own",
    secretEnv: "CLAUDEMESH_ADMIN_TOKEN",
  },
  { flag: "mesh", value: "<name>", help: "without an admin token: a mesh that exists, made for tests" },
  {
    flag: "owner-token",
    value: "<token>",
    help: "with --mesh: a bearer token of an owner, to invite the kit's members",
    secretEnv: "CLAUDEMESH_OWNER_TOKEN",
  },
  {
    flag: "invite",
    value: "<invite>",
    help: "with --mesh and no owner: single-use invites, three at least, of a mesh with dm_policy any; what needs an owner is skipped",
    repeatable: true,
  },
];

export const budgetOption: OptionSpec = {
  flag: "budget",
  value: "<n>",
  help: "messages that the rate limit allows in a window; the kit spends them in a mesh of its own",
};
