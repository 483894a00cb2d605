// Services to write in tests: an ordinary one, and one whose folders have every character that a format could trip on.
import { daemonProgram, type ServiceSpec } from "../service/service-spec.ts";

export function serviceSpec(given: Partial<ServiceSpec> = {}): ServiceSpec {
  return {
    scope: "user",
    program: daemonProgram("acme"),
    home: "/srv/mesh",
    launcher: "/opt/claudemesh/bin/claudemesh.js",
    nodeFolder: "/opt/node/bin",
    owner: { uid: 1000, gid: 1001, name: "alice" },
    ...given,
  };
}

export const oddFolders = [
  "/srv/with space",
  "/srv/100% %h sure",
  "/srv/$HOME $(id) $$",
  '/srv/it\'s "quoted"',
  "/srv/it's $HOME",
  "/srv/back\\slash\\n",
  "/srv/<a> & 'b'",
  "/srv/Müller/メッシュ",
];
