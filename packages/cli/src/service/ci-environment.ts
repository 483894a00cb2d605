// Is this a build machine's environment? What is installed there would outlive the job that asked for it.

const ciVariables = ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL"];

/** The variable that says so; undefined elsewhere. `CI=false` is how people say that it is none. */
export function findCiVariable(env: Readonly<Record<string, string | undefined>>): string | undefined {
  return ciVariables.find((name) => !["", "0", "false"].includes((env[name] ?? "").toLowerCase()));
}
