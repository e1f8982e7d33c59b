-- An item that is not processed has a row in `tsuzuki_waiting_items`, also one that another program or a person has put into
-- `items`. A pending item is drawn by when it was published, any other by when it was checked last.

CREATE FUNCTION tsuzuki_items_waiting_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tsuzuki_waiting_items (item_id, state, is_pending, order_at)
    SELECT
        item.id, 'ready', item.status = 2,
        CASE WHEN item.status = 2 THEN item.published_at ELSE item.last_checked_at END
    FROM added AS item
    WHERE item.status <> 3
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_items_waiting_insert AFTER INSERT ON items
REFERENCING NEW TABLE AS added FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_items_waiting_insert();

CREATE FUNCTION tsuzuki_items_waiting_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tsuzuki_waiting_items WHERE item_id = NEW.id AND NEW.status = 3;
    UPDATE tsuzuki_waiting_items SET
        is_pending = (NEW.status = 2),
        order_at = CASE WHEN NEW.status = 2 THEN NEW.published_at ELSE NEW.last_checked_at END,
        state = CASE WHEN state = 'approval' THEN 'ready' ELSE state END
    WHERE item_id = NEW.id AND is_pending <> (NEW.status = 2);
    INSERT INTO tsuzuki_waiting_items (item_id, feed_id, state, is_pending, order_at)
    SELECT
        NEW.id, (SELECT feed_id FROM tsuzuki_item_details WHERE item_id = NEW.id), 'ready', NEW.status = 2,
        CASE WHEN NEW.status = 2 THEN NEW.published_at ELSE NEW.last_checked_at END
    WHERE NEW.status <> 3 AND NOT EXISTS (SELECT 1 FROM tsuzuki_waiting_items WHERE item_id = NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_items_waiting_update AFTER UPDATE OF status ON items FOR EACH ROW
WHEN (NEW.status <> OLD.status)
EXECUTE FUNCTION tsuzuki_items_waiting_update();
