// What both stores hold webhooks to.

/**
 * Deliveries of one webhook that are neither settled nor parked. A receiver that is away for long makes its webhook
 * wait where it is in history; it does not fill the table.
 */
export const openDeliveriesMax = 1_000;
