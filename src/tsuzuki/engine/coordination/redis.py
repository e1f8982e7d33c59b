"""Coordination through a Redis. Every key has a TTL, and is ignored if it outlives that TTL.

    <prefix>:worker:beat:<worker id>     its TTL in milliseconds    while the worker sends heartbeats
    <prefix>:jobrun:lease:<job run id>   worker id                  while the run is being assigned
    <prefix>:wake:<channel>              a pub/sub channel; messages are worker ids, or empty for all

`?prefix=` at the end of the URL sets the prefix, so that several installations can share one Redis.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tsuzuki.engine.coordination.circuit_breaker import CircuitBreaker
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, ServiceUnreachable
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel, messages, recipients
from tsuzuki.store.wakeups.listeners import Listener

PREFIX_DEFAULT = "tsuzuki"

SOCKET_TIMEOUT_SECONDS = 0.2
"""Timeout of each socket operation; shorter than the circuit breaker's, so that the cause is known first."""

HEALTH_CHECK_SECONDS = 15
"""A connection that was idle for so long is checked before it is used."""

PING_AFTER_SECONDS = 5.0
"""A listener that has received nothing for so long sends a PING."""

PONG_WITHIN_SECONDS = 5.0
"""And takes the server for unreachable if no PONG comes for so long."""

PROBE_MILLISECONDS = 1000

LEASE = """
local elsewhere = {}
for place, key in ipairs(KEYS) do
  local ttl, worker = tonumber(ARGV[1]), ARGV[place + 1]
  if not redis.call('SET', key, worker, 'NX', 'PX', ttl) then
    local left = redis.call('PTTL', key)
    if left < 0 or left > ttl then
      redis.call('SET', key, worker, 'PX', ttl)
    elseif redis.call('GET', key) ~= worker then
      elsewhere[#elsewhere + 1] = place
    end
  end
end
return elsewhere
"""
"""Reserves keys 1 … n for the workers that follow the TTL in ARGV, and returns the indexes of those that are
reserved for another worker. In one script, because a round has hundreds of them. A reservation that outlives its TTL,
by clock skew (the server's clock was set back) or because it is not ours, is replaced: it would block its run
for as long as it lasts."""


class RedisCoordination:
    """Connects with the first call, in the thread of the circuit breaker."""

    def __init__(self, url: str, *, clock: Clock) -> None:
        location, self._prefix = _without_prefix(url)
        self._client = _client(location)
        self._clock = clock
        self._channels = {
            channel: self._key("wake", channel.name.lower()) for channel in WakeupChannel
        }
        self._breaker = CircuitBreaker(
            service=_address(self._client), probe=self._probe, clock=clock
        )

    @property
    def is_configured(self) -> bool:
        return True

    def heartbeat(self, worker_id: str, *, ttl_seconds: float) -> None:
        key, ttl = self._heartbeat_key(worker_id), _milliseconds(ttl_seconds)
        self._breaker.post(key, partial(self._client.set, key, str(ttl), px=ttl))

    def live_workers(self, worker_ids: Collection[str]) -> frozenset[str]:
        if not worker_ids:
            return frozenset()
        return self._breaker.call(partial(self._read_heartbeats, list(worker_ids))) or frozenset()

    def reserve(self, assignments: Mapping[int, str], *, ttl_seconds: float) -> frozenset[int]:
        if not assignments:
            return frozenset()
        ttl = _milliseconds(ttl_seconds)
        return self._breaker.call(partial(self._reserve, dict(assignments), ttl)) or frozenset()

    def release(self, run_ids: Collection[int]) -> None:
        if run_ids:
            keys = [self._reservation_key(run_id) for run_id in run_ids]
            self._breaker.call(partial(self._client.delete, *keys))

    def wake(self, names: Collection[str]) -> None:
        for channel, message in messages(names).items():
            key = self._channels[channel]
            self._breaker.post((key, message), partial(self._client.publish, key, message))

    def listener(self) -> Listener | None:
        if not self._breaker.allows_calls():
            return None
        return RedisListener(
            self._client.pubsub,
            {key: channel for channel, key in self._channels.items()},
            breaker=self._breaker,
            clock=self._clock,
        )

    def close(self) -> None:
        self._breaker.shut_down(self._client.close)

    # --- in the thread of the breaker -----------------------------------------------------------

    def _read_heartbeats(self, worker_ids: Sequence[str]) -> frozenset[str]:
        with self._client.pipeline(transaction=False) as pipeline:
            for worker_id in worker_ids:
                pipeline.get(self._heartbeat_key(worker_id))
                pipeline.pttl(self._heartbeat_key(worker_id))
            answers = pipeline.execute()
        found = zip(worker_ids, answers[::2], answers[1::2], strict=True)
        return frozenset(worker_id for worker_id, ttl, left in found if _is_valid(ttl, left))

    def _reserve(self, assignments: Mapping[int, str], ttl: int) -> frozenset[int]:
        run_ids = list(assignments)
        keys = [self._reservation_key(run_id) for run_id in run_ids]
        arguments: list[int | str] = [ttl, *assignments.values()]
        elsewhere: Any = self._client.eval(LEASE, len(keys), *keys, *arguments)
        return frozenset(run_ids[index - 1] for index in elsewhere)

    def _probe(self) -> None:
        """Try every command we need: a server may answer a PING and yet be full, read-only, or deny access."""
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.set(self._key("probe"), "", px=PROBE_MILLISECONDS)
            pipeline.publish(self._key("wake", "probe"), "")
            pipeline.eval(LEASE, 0, PROBE_MILLISECONDS)
            pipeline.execute()

    def _heartbeat_key(self, worker_id: str) -> str:
        return self._key("worker", "beat", worker_id)

    def _reservation_key(self, run_id: int) -> str:
        return self._key("jobrun", "lease", str(run_id))

    def _key(self, *names: str) -> str:
        return ":".join((self._prefix, *names))


class RedisListener:
    """A subscription on a connection of its own, made by the first `wait`. Used by one thread."""

    def __init__(
        self,
        new_subscription: Callable[[], Any],
        channels: Mapping[str, WakeupChannel],
        *,
        breaker: CircuitBreaker,
        clock: Clock,
    ) -> None:
        self._new_subscription = new_subscription
        self._channels = channels
        self._breaker = breaker
        self._clock = clock
        self._subscription: Any = None
        self._received_at = 0.0
        self._pinged_at: float | None = None

    def wait(self, seconds: float) -> Collection[str]:
        try:
            if self._subscription is None:
                self._subscribe()
                return ALL_CHANNELS
            return self._listen(seconds)
        except Exception as problem:
            self._breaker.record_failure(problem)
            raise ServiceUnreachable(f"Redis is unreachable: {problem}") from problem

    def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()

    def _subscribe(self) -> None:
        self._subscription = self._new_subscription()
        self._subscription.subscribe(*self._channels)
        for _ in self._channels:
            if self._subscription.get_message(timeout=SOCKET_TIMEOUT_SECONDS) is None:
                raise TimeoutError("the subscription was not confirmed")
        self._received_at = self._clock.monotonic()

    def _listen(self, seconds: float) -> Collection[str]:
        message = self._subscription.get_message(timeout=seconds)
        now = self._clock.monotonic()
        if message is None:
            self._check_silence(now)
            return ()
        self._received_at, self._pinged_at = now, None
        if message["type"] != "message":
            return ()
        return recipients(self._channels[message["channel"]], message["data"])

    def _check_silence(self, now: float) -> None:
        """An unreachable server and an idle one are equally silent: a PING tells them apart."""
        if self._pinged_at is None:
            if now - self._received_at >= PING_AFTER_SECONDS:
                self._subscription.ping()
                self._pinged_at = now
        elif now - self._pinged_at >= PONG_WITHIN_SECONDS:
            raise TimeoutError(f"no response within {PONG_WITHIN_SECONDS:g} s")


def _is_valid(ttl: str | None, left_milliseconds: int) -> bool:
    """Whether a heartbeat key expires within its own TTL. One that outlives it is the product of clock skew
    (the server's clock was set back), or is not ours; it would keep a dead worker attached for as long as it
    lasts."""
    return ttl is not None and ttl.isdecimal() and 0 < left_milliseconds <= int(ttl)


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 1)


def _without_prefix(url: str) -> tuple[str, str]:
    """The URL as the client library takes it, and our prefix."""
    location, _, query = url.partition("?")
    options = [option for option in query.split("&") if not option.startswith("prefix=")]
    prefix = parse_qs(query, keep_blank_values=True).get("prefix", [PREFIX_DEFAULT])[-1]
    if not re.fullmatch(r"[A-Za-z0-9_.:-]+", prefix):
        raise ConfigurationError(
            f"invalid prefix {prefix!r} in the Redis URL",
            hint="A prefix consists of letters, digits, and _ . : - as in ?prefix=tsuzuki-staging",
            code="redis_url",
        )
    return "?".join(filter(None, (location, "&".join(options)))), prefix


def _client(url: str) -> Redis:
    """A client that never retries by itself: its caller would have to wait for that."""
    try:
        client = Redis.from_url(
            url,
            protocol=2,
            decode_responses=True,
            socket_timeout=SOCKET_TIMEOUT_SECONDS,
            socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
            health_check_interval=HEALTH_CHECK_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        # Opens no socket yet, but finds an unknown option here and not at the first call.
        client.connection_pool.make_connection()
    except (TypeError, ValueError):
        raise ConfigurationError(
            "invalid Redis URL",
            hint="Write redis://host:6379/0, rediss:// for TLS, or unix:///path/to/socket; also "
            "check the options after the `?`.",
            code="redis_url",
        ) from None  # the library's message may contain a part of the URL, and so of a password
    return client


def _address(client: Redis) -> str:
    """Its address, for the log: never the URL, which may contain a password."""
    options = client.connection_pool.connection_kwargs
    address = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"redis {options.get('path') or address}"
