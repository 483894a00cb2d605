// Topics and queues are written like addresses where one sends to them; where a command takes nothing else, the sign in
// front may be left out or not. No name begins with one.

export const topicName = (given: string): string => given.replace(/^(#|topic:)/, "");

export const queueName = (given: string): string => given.replace(/^queue:/, "");
