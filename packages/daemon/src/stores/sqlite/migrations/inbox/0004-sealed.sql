-- Whether a message came sealed; unknown of what was received before this was written down. `unreadable` is 1 where the box
-- could not be opened, and 2 where the broker's labels differ from what it says inside. The agents are from inside it.
ALTER TABLE inbox ADD COLUMN sealed INTEGER;
ALTER TABLE inbox ADD COLUMN from_agent TEXT;
ALTER TABLE inbox ADD COLUMN to_agent TEXT;
ALTER TABLE inbox_earlier ADD COLUMN sealed INTEGER;
ALTER TABLE inbox_earlier ADD COLUMN from_agent TEXT;
ALTER TABLE inbox_earlier ADD COLUMN to_agent TEXT;

DROP INDEX inbox_unreadable;
CREATE INDEX inbox_unreadable ON inbox (unreadable) WHERE unreadable > 0;

DROP VIEW inbox_message;
CREATE VIEW inbox_message AS
  SELECT seq, id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority, meta,
    reply_to_id, accepted_at, received_at, read_at, unreadable, restored, sealed, from_agent, to_agent, body,
    0 AS is_earlier FROM inbox
  UNION ALL
  SELECT seq, id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority, meta,
    reply_to_id, accepted_at, received_at, read_at, unreadable, restored, sealed, from_agent, to_agent, body,
    1 AS is_earlier FROM inbox_earlier;
