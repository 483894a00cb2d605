// Pages of lists as the local API answers them.
import type { Page, PageOfNewest } from "../ports.ts";
import { type Answer, ok } from "./route.ts";

type Show<T> = (item: T) => Record<string, unknown>;

export function showPage<T>(page: Page<T>, show: Show<T>): Answer {
  return ok({ items: page.items.map(show), next_cursor: page.nextCursor ?? null });
}

export function showNewest<T>(page: PageOfNewest<T>, show: Show<T>): Answer {
  return ok({
    items: page.items.map(show),
    next_cursor: page.nextCursor ?? null,
    prev_cursor: page.prevCursor ?? null,
    older: page.older,
  });
}
