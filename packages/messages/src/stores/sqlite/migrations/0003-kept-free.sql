-- Number 3 is taken by another change; this file goes when that one comes.
SELECT 1;
