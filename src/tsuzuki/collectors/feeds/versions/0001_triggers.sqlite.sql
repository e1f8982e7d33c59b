-- An item that is not processed has a row in `tsuzuki_waiting_items`, also one that another program or a person has put into
-- `items`. Its times get the form in which ours are compared; what is not a time is refused.

-- The times of items in the form in which they are stored, NULL if one is not a time. Go writes a time as
-- `2024-05-01 09:00:00.5 +0900 JST`, which SQLite reads without the name of its zone and with a colon in its offset.
CREATE VIEW tsuzuki_item_times AS
SELECT
    item_id,
    name,
    CASE
        WHEN written LIKE '____-__-__T__:__:__.______Z' THEN written
        ELSE strftime(
            '%Y-%m-%dT%H:%M:%f',
            CASE
                WHEN written GLOB
                    '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]* [+-][0-9][0-9][0-9][0-9]*'
                THEN substr(written, 1, 19)
                    || substr(substr(written, 20, instr(substr(written, 20), ' ') - 1), 1, 4)
                    || substr(written, 20 + instr(substr(written, 20), ' '), 3)
                    || ':'
                    || substr(written, 23 + instr(substr(written, 20), ' '), 2)
                ELSE written
            END,
            CASE typeof(written) WHEN 'integer' THEN 'unixepoch' ELSE '+0 seconds' END
        ) || '000Z'
    END AS time
FROM (
    SELECT id AS item_id, 'published_at' AS name, published_at AS written FROM items
    UNION ALL SELECT id, 'created_at', created_at FROM items
    UNION ALL SELECT id, 'last_checked_at', last_checked_at FROM items
);

CREATE TRIGGER tsuzuki_items_times_insert AFTER INSERT ON items
WHEN NEW.published_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.created_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.last_checked_at NOT LIKE '____-__-__T__:__:__.______Z'
BEGIN
    SELECT RAISE(ABORT, 'a time of the item is not a date and time')
    WHERE EXISTS (SELECT 1 FROM tsuzuki_item_times WHERE item_id = NEW.id AND time IS NULL);
    UPDATE items SET
        published_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'published_at'),
        created_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'created_at'),
        last_checked_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'last_checked_at')
    WHERE id = NEW.id;
END;

CREATE TRIGGER tsuzuki_items_times_update AFTER UPDATE OF published_at, created_at, last_checked_at ON items
WHEN NEW.published_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.created_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.last_checked_at NOT LIKE '____-__-__T__:__:__.______Z'
BEGIN
    SELECT RAISE(ABORT, 'a time of the item is not a date and time')
    WHERE EXISTS (SELECT 1 FROM tsuzuki_item_times WHERE item_id = NEW.id AND time IS NULL);
    UPDATE items SET
        published_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'published_at'),
        created_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'created_at'),
        last_checked_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'last_checked_at')
    WHERE id = NEW.id;
END;

-- A pending item is drawn by when it was published, any other by when it was checked last. The trigger that writes the
-- times in our form may fire later, so they are not taken from NEW.
CREATE TRIGGER tsuzuki_items_waiting_insert AFTER INSERT ON items
WHEN NEW.status <> 3
BEGIN
    INSERT INTO tsuzuki_waiting_items (item_id, state, is_pending, order_at)
    SELECT NEW.id, 'ready', NEW.status = 2, time FROM tsuzuki_item_times
    WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER tsuzuki_items_waiting_update AFTER UPDATE OF status ON items
WHEN NEW.status <> OLD.status
BEGIN
    DELETE FROM tsuzuki_waiting_items WHERE item_id = NEW.id AND NEW.status = 3;
    UPDATE tsuzuki_waiting_items SET
        is_pending = (NEW.status = 2),
        order_at = (
            SELECT time FROM tsuzuki_item_times
            WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
        ),
        state = CASE WHEN state = 'approval' THEN 'ready' ELSE state END
    WHERE item_id = NEW.id AND is_pending <> (NEW.status = 2);
    INSERT INTO tsuzuki_waiting_items (item_id, feed_id, state, is_pending, order_at)
    SELECT
        NEW.id, (SELECT feed_id FROM tsuzuki_item_details WHERE item_id = NEW.id), 'ready', NEW.status = 2, time
    FROM tsuzuki_item_times
    WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
        AND NEW.status <> 3 AND NOT EXISTS (SELECT 1 FROM tsuzuki_waiting_items WHERE item_id = NEW.id);
END;
