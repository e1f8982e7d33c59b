-- A request for the live stack of a run, and its worker's answer. Deleted a minute later, with another request.
CREATE TABLE tsuzuki_run_stacks (
    run_id BIGINT NOT NULL,
    requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
    stack TEXT,
    dumped_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_run_stacks PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_ck_run_stacks_dumped CHECK ((stack IS NULL) = (dumped_at IS NULL))
);
