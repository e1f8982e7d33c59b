-- A process that was killed is recorded as dead by another one of its machine.
ALTER TABLE tsuzuki_workers ADD COLUMN process_name TEXT;
ALTER TABLE tsuzuki_workers ADD COLUMN died_at TIMESTAMP WITH TIME ZONE;
