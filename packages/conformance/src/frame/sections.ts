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
  "5.1": "running",
  "5.2": "HTTP, as a member",
  "5.3": "WebSocket",
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
