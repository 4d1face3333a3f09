// Shares, which people type in per cent.

/** @param {string} percent */
export const shareOf = (percent) => (percent === "" ? "" : Number((Number(percent) / 100).toPrecision(12)));

/** @param {number} share */
export const percentOf = (share) => String(Number((100 * share).toPrecision(12)));

/** What the total of shares says that should be all. @param {number} total */
export const totalText = (total) => `Total: ${total} %${total === 100 ? "" : ", which should be 100 %"}.`;
