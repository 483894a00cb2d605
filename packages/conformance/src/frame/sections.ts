// The sections of the contract that scenarios belong to, in the order in which they are shown.
export const sectionTitles: Readonly<Record<string, string>> = {
  "0": "an exact retry gets the first answer",
  "1.1": "identity of a send",
  "1.2": "two layers, owner of an id",
  "1.3": "the daemon's answer to a send",
  "1.4": "life of an outbox row",
  "1.5": "the broker's accept",
  "1.6": "delivery and queues",
  "1.7": "where is my message",
  "1.8": "sealed direct messages",
  "1.10": "negotiation",
  "2.2": "local API",
  "2.5": "staying alive",
  "3.1": "values and operations",
  "3.2": "sessions",
  "3.3": "commits",
  "3.4": "reads, history, branches",
  "3.5": "watch and sync",
  "3.6": "what a client library rests on",
  "3.7": "signed writes",
  "3.8": "spaces over HTTP",
  "4.1": "three identities",
  "4.2": "the registrar's API",
  "4.3": "the order of checks",
  "4.4": "the registrar's answers",
  "4.5": "fit to be the replay surface",
  "4.6": "once",
  "5.1": "running",
  "5.2": "HTTP, as a member",
  "5.3": "WebSocket",
  "6.1": "addresses and who may write to them",
  "8.3": "who is it really",
  "8.7": "settings of a mesh",
};

const order = Object.keys(sectionTitles).sort((a, b) => {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
});

export function sortSections(sections: Iterable<string>): string[] {
  const wanted = new Set(sections);
  return order.filter((each) => wanted.has(each));
}
