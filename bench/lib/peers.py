"""Starts headgate, its peers, the origin and Redis, all configured to do the same job.

Each has one worker on one core, an access log, keep-alive to the origin and X-Forwarded-For. Log lines are buffered where a proxy can do
it (headgate, nginx); HAProxy sends them to a syslog port, which is bound and never read; Caddy writes JSON lines. Ports are chosen among
the free ones, files are in the group's folder.
"""
import contextlib
import dataclasses
import os
import socket
import subprocess
import time

from lib.processes import free_port, wait_for_port

LUA_MODULES = "/usr/lib/nginx/modules"


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a proxy does beside forwarding."""
    limits: str = "none"  # none, allow, refuse, refuse-quietly (nginx logs no refusals), mixed (the key `spent` is above its limit)
    rules: int = 2        # of the chain; more than two only for headgate
    keys: int = 100_000   # that its tables must hold
    routes: int = 0       # above 0: /r/0/* … /r/(routes - 1)/*
    store: str = "memory"  # memory, redis, cluster
    workers: int = 1
    clients: int = 10_000  # that it must be able to hold


@dataclasses.dataclass
class Peer:
    name: str
    process: subprocess.Popen
    port: int


class Skipped(RuntimeError):
    """This peer cannot be measured on this machine or in this scenario; the message says why."""


class Peers:
    def __init__(self, group, cores, binaries, tools):
        """`binaries`: label -> binary of headgate, at least `headgate`; each takes part in every scenario."""
        self.group, self.cores, self.binaries, self.tools = group, cores, binaries, tools
        self.origin = self._start("origin", cores.origin, free_port(), os.path.join(tools, "bench_origin"), "{port}",
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.redis = []  # the servers that run
        self.syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.syslog.bind(("127.0.0.1", 0))

    def _start(self, name, cores, port, *command, **streams):
        process = self.group.start(cores, *(part.replace("{port}", str(port)) for part in command), **streams)
        wait_for_port(self.group, process, port)
        return Peer(name, process, port)

    def start(self, name, setting, on_both_cores=False):
        if name in self.binaries:
            return self.start_headgate(name, setting, on_both_cores)
        return getattr(self, "start_" + name.replace("+", "_"))(setting)

    def end(self, peer):
        self.group.end(peer.process)

    def load_in_origin(self, *arguments):
        """One run of the load in the origin's own thread (bench/origin.cpp); the line that it prints."""
        with contextlib.suppress(OSError):  # an origin that has ended prints nothing either
            self.origin.process.stdin.write(" ".join(arguments) + "\n")
            self.origin.process.stdin.flush()
        said = self.origin.process.stdout.readline()
        if not said:
            raise SystemExit(f"the origin ended: {self.group.last_words('bench_origin')}")
        return said

    # ---- headgate

    def start_headgate(self, label, setting, on_both_cores=False):
        binary = self.binaries[label]
        port = free_port()
        conf = self.group.write(f"headgate-{port}.yaml", self.headgate_yaml(setting, port))
        checked = subprocess.run([binary, "check", conf], capture_output=True, text=True)
        if checked.returncode != 0:
            raise Skipped("this build refuses it: " + (checked.stderr + checked.stdout).strip().splitlines()[0].partition(": ")[2])
        return self._start(label, self.cores.pair if on_both_cores else self.cores.proxy, port, binary, "run", conf)

    def headgate_yaml(self, setting, port):
        bucket, window = {"allow": ("9000000/second", "800000000000/day"), "mixed": ("100/second", "800000000000/day"),
                          "none": ("", "")}.get(setting.limits, ("1/hour", "1/day"))
        if setting.store != "memory":
            bucket, window = "1000000/second", "1000000000/day"
        chains, use = "", ""
        if bucket:
            rules = [f"{{ name: rule{i}, key: user, algorithm: {'fixed_window' if i % 2 else 'token_bucket'}, limit: {window if i % 2 else bucket} }}"
                     for i in range(setting.rules)]
            chains = f"""
stores: {{ counters: {self._store_yaml(setting)} }}
keys: {{ user: [ {{ header: X-API-Key }} ] }}
chains:
  api:
    store: counters
    rules:
""" + "".join(f"      - {rule}\n" for rule in rules)
            use = ", chains: [ api ]"
        routes = [f"  - {{ name: r{i}, match: {{ path: /r/{i}/* }}, upstream: origin{use} }}" for i in range(setting.routes)]
        routes = routes or [f"  - {{ name: all, upstream: origin{use} }}"]
        pending = max(1024, setting.clients)  # all clients may wait for one of the 1,024 upstream connections at once
        return f"""
workers: {setting.workers}
listeners: [ {{ address: 127.0.0.1:{port}, timeouts: {{ idle: 600s }} }} ]
log: {{ access: {{ path: {self.group.path(f'headgate-{port}-access.log')}, format: combined }} }}
upstreams: {{ origin: {{ servers: [ 127.0.0.1:{self.origin.port} ], max_pending: {pending} }} }}
{chains}
routes:
""" + "\n".join(routes) + "\n"

    def _store_yaml(self, setting):
        if setting.store == "memory":
            return f"{{ type: memory, max_keys: {max(setting.keys * 2, 100_000)} }}"
        if setting.store == "redis":
            url = f"redis://127.0.0.1:{self.redis[0].port}/0"
        else:
            url = "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.redis)
        return f'{{ type: redis, url: "{url}", timeout: 1s, on_outage: closed }}'

    # ---- the floor

    def start_floor(self, _):
        """What relaying the bytes alone costs: bench/floor.cpp."""
        return self._start("floor", self.cores.proxy, free_port(), os.path.join(self.tools, "bench_floor"), "{port}", str(self.origin.port))

    # ---- nginx

    def start_nginx(self, setting):
        rate = {"allow": "1000000r/s", "mixed": "100r/s", "none": None}.get(setting.limits, "1r/m")
        megabytes = max(16, setting.keys // 6000)  # a state takes 128 bytes of a zone, its tree some more
        zones = "".join(f"limit_req_zone $http_x_api_key zone={zone}:{megabytes}m rate={rate};" for zone in "ab") if rate else ""
        burst = {"allow": " burst=1000 nodelay", "mixed": " burst=100 nodelay"}.get(setting.limits, "")
        use = f"limit_req zone=a{burst}; limit_req zone=b{burst}; limit_req_status 429;" if rate else ""
        # By default nginx writes a line per refusal into its error log; headgate has the same facts in its access log.
        return self._start_nginx("nginx", f"{zones} {use}", setting, error_level="crit" if setting.limits == "refuse-quietly" else "error")

    def start_nginx_lua(self, setting):
        """nginx with the usual Lua client of Redis: one EVALSHA per request over pooled connections."""
        if setting.store != "redis":
            raise Skipped("nginx + Lua is compared with one Redis server")
        for module in ("ndk_http_module.so", "ngx_http_lua_module.so"):
            if not os.path.exists(f"{LUA_MODULES}/{module}"):
                raise Skipped(f"{LUA_MODULES}/{module} is missing: script/setup bench installs it")
        with open(os.path.join(os.path.dirname(__file__), "two_limits.lua")) as script:
            sha = self.group.output(None, "redis-cli", "-p", str(self.redis[0].port), "SCRIPT", "LOAD", script.read()).strip()
        asking = f"""
      access_by_lua_block {{
        local redis = require "nginx.redis"  -- lua-resty-redis, as Debian names it
        local r = redis:new()
        r:set_timeout(1000)
        if not r:connect("127.0.0.1", {self.redis[0].port}) then return ngx.exit(503) end
        local said = r:evalsha("{sha}", 1, "rl:" .. (ngx.var.http_x_api_key or ""), 1000000, 1000000, 1000000000)
        r:set_keepalive(60000, 1000)
        if not said then return ngx.exit(503) end
        ngx.header["X-RateLimit-Remaining"] = said[2]
        if said[1] == 0 then return ngx.exit(429) end
      }}"""
        modules = f"load_module {LUA_MODULES}/ndk_http_module.so; load_module {LUA_MODULES}/ngx_http_lua_module.so;"
        paths = 'lua_package_path "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;";'
        return self._start_nginx("nginx+lua", paths, setting, modules=modules, in_location=asking)

    def _start_nginx(self, name, in_http, setting, modules="", in_location="", error_level="error"):
        port = free_port()
        path = self.group.path(f"{name}-{port}")
        temporary = "".join(f"{kind}_temp_path {path}-{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        places = [f"/r/{i}/" for i in range(setting.routes)] or ["/"]
        locations = "\n".join(f"    location {place} {{ {in_location} proxy_pass http://origin; }}" for place in places)
        conf = self.group.write(f"{name}-{port}.conf", f"""
{modules}
worker_processes 1; pid {path}.pid; error_log {path}.err {error_level}; daemon off; master_process off;
worker_rlimit_nofile {setting.clients * 2 + 1024};
events {{ worker_connections {setting.clients * 2 + 512}; }}
http {{
  keepalive_requests 1000000000; keepalive_timeout 600s; {temporary}
  access_log {path}-access.log combined buffer=64k;
  {in_http}
  upstream origin {{ server 127.0.0.1:{self.origin.port}; keepalive 1024; keepalive_requests 1000000000; }}
  proxy_http_version 1.1; proxy_set_header Connection "";
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header Host $host;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
{locations}
  }}
}}
""")
        return self._start(name, self.cores.proxy, port, "nginx", "-c", conf)

    # ---- HAProxy

    def start_haproxy(self, setting):
        port = free_port()
        most = {"allow": 1_000_000_000, "mixed": 100, "none": None}.get(setting.limits, 0)
        rules = tables = ""
        if most is not None:
            rules = f"""
  http-request track-sc0 req.hdr(x-api-key) table second
  http-request track-sc1 req.hdr(x-api-key) table day
  http-request deny deny_status 429 if {{ sc_http_req_rate(0,second) gt {most} }} or {{ sc_http_req_rate(1,day) gt {max(most, 1_000_000) if most else 0} }}"""
            size = setting.keys + setting.keys // 10
            tables = f"""
backend second
  stick-table type string len 64 size {size} expire 10s store http_req_rate(1s)
backend day
  stick-table type string len 64 size {size} expire 1d store http_req_rate(1d)"""
        choice = "default_backend origin"
        if setting.routes:
            routes = self.group.write(f"haproxy-{port}.map", "".join(f"/r/{i}/ origin\n" for i in range(setting.routes)))
            choice = f"use_backend %[path,map_beg({routes})]"
        conf = self.group.write(f"haproxy-{port}.cfg", f"""
global
  nbthread 1
  maxconn {most_clients_of_haproxy(setting.clients)}
  log 127.0.0.1:{self.syslog.getsockname()[1]} local0
defaults
  mode http
  log global
  option httplog
  option forwardfor
  timeout client 600s
  timeout server 600s
  timeout connect 5s
  http-reuse always
frontend f
  bind 127.0.0.1:{port} backlog 4096{rules}
  {choice}
backend origin
  server o 127.0.0.1:{self.origin.port}{tables}
""")
        return self._start("haproxy", self.cores.proxy, port, "haproxy", "-db", "-f", conf)

    # ---- Caddy, which has no limiter of its own

    def start_caddy(self, setting):
        if setting.limits != "none":
            raise Skipped("Caddy has no limiter of its own")
        port = free_port()
        conf = self.group.write(f"Caddyfile-{port}", f"""
{{
  admin off
  auto_https off
  storage file_system {self.group.path('caddy')}
  servers {{
    timeouts {{
      idle 600s
    }}
  }}
}}
http://:{port} {{
  bind 127.0.0.1
  log {{
    output file {self.group.path(f'caddy-{port}-access.log')}
  }}
  reverse_proxy 127.0.0.1:{self.origin.port} {{
    transport http {{
      keepalive_idle_conns_per_host 1024
      keepalive 600s
    }}
  }}
}}
""")
        return self._start("caddy", self.cores.proxy, port, "env", "GOMAXPROCS=1", f"HOME={self.group.folder}", "caddy", "run", "--config", conf,
                           "--adapter", "caddyfile")

    # ---- Redis

    def start_redis(self, store):
        if store == "redis":
            self.redis = [self._start_redis(free_port())]
        elif store == "cluster":
            self.redis = [self._start_redis(free_port(apart=10000), "--cluster-enabled", "yes") for _ in range(3)]
            servers = [f"127.0.0.1:{server.port}" for server in self.redis]
            self.group.output(None, "redis-cli", "--cluster", "create", *servers, "--cluster-yes", timeout=60)
            for server in self.redis:
                self._wait_for_cluster(server)

    def _wait_for_cluster(self, server):
        """Waits until the server considers its cluster complete: some seconds after it was created."""
        for _ in range(200):
            if "cluster_state:ok" in self.group.output(None, "redis-cli", "-p", str(server.port), "CLUSTER", "INFO"):
                return
            time.sleep(0.1)
        raise RuntimeError("the Redis cluster did not become ready")

    def _start_redis(self, port, *more):
        folder = self.group.path(f"redis-{port}")
        os.mkdir(folder)
        return self._start("redis", self.cores.redis, port, "redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly",
                           "no", "--dir", folder, *more)

    def end_redis(self):
        for server in self.redis:
            self.end(server)
        self.redis = []


def most_clients_of_haproxy(wanted):
    """HAProxy reserves two descriptors per connection of its maxconn at the start."""
    import resource
    return min(wanted + 500, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200) // 2)
