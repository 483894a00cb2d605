-- Pages of done rows, and those to prune, without walking through what is still open: behind half a million pending rows
-- one page took 0.1 s, and every send waited for it. A row enters at the end, once, when it is done; accepting costs nothing.
CREATE INDEX outbox_done ON outbox (id) WHERE status = 'done';
