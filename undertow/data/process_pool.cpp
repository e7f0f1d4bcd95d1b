// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/process_pool.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/data/pipeline.h"
#include "undertow/data/processes.h"
#include "undertow/data/row_message.h"

namespace undertow::data {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFirstBytes = 64 << 10;
constexpr auto kTick = 50ms;       // how often one who waits looks around
constexpr auto kFarewell = 500ms;  // what an idle worker gets to end by itself

ForkHooks& hooks() {
  static auto* h = new ForkHooks;
  return *h;
}

/// Ends of sockets in this process, which a forked child closes: it must see its own parent's end only.
struct OpenEnds {
  std::mutex mutex;
  std::set<int> sockets;
};
OpenEnds& open_ends() {
  static auto* e = new OpenEnds;
  return *e;
}

/// Memory of two processes, made before the fork. Each has its own view and grows it when told to.
class SharedArea {
 public:
  explicit SharedArea(const std::string& what) : file_(memfd_create("undertow-rows", MFD_CLOEXEC)) {
    UNDERTOW_CHECK(file_ >= 0, RuntimeError, "{}: no shared memory for a worker process: {}", what,
                   std::strerror(errno));
    try {
      reserve(kFirstBytes);
    } catch (...) {
      close(file_);
      throw;
    }
  }
  ~SharedArea() {
    munmap(data_, size_);
    close(file_);
  }
  SharedArea(const SharedArea&) = delete;

  /// Room for `bytes`. The pages are there afterwards: short memory is an error now, not a signal later.
  void reserve(std::size_t bytes) {
    if (bytes <= size_) return;
    const std::size_t size = std::max((bytes + kFirstBytes - 1) / kFirstBytes * kFirstBytes, size_ + size_ / 2);
    const int error = posix_fallocate(file_, 0, static_cast<off_t>(size));
    UNDERTOW_CHECK(error == 0, DataError, "no {} MB of memory to share with a worker process: {}", size >> 20,
                   std::strerror(error));
    see(size);
  }
  /// The other side has reserved `size`.
  void see(std::size_t size) {
    if (size <= size_) return;
    void* p = data_ ? mremap(data_, size_, size, MREMAP_MAYMOVE)
                    : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    UNDERTOW_CHECK(p != MAP_FAILED, DataError, "cannot map the {} MB shared with a worker process: {}", size >> 20,
                   std::strerror(errno));
    data_ = static_cast<std::byte*>(p);
    size_ = size;
  }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  int file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

enum Status : std::uint64_t { kRow, kError, kPacked, kForeign };

/// What goes over the socket; rows and errors lie in the shared area.
struct Request {
  std::uint64_t area = 0;  // its size
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, sample = 0;
  std::uint32_t op = 0;
};
struct Reply {
  std::uint64_t area = 0;
  std::uint64_t status = kRow;
};

// ---- The child's side.

std::string type_name(const std::exception& e) {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &status);
  const std::string out = status == 0 ? name : typeid(e).name();
  std::free(name);
  return out;
}

/// The exception in flight, as status and the two texts in the area: what it is, and what it says.
Status pack_error(SharedArea& area) {
  std::string kind, text;
  Status status = kForeign;
  try {
    throw;
  } catch (const Error& e) {
    status = kError;
    kind = e.kind();
    text = e.what();
  } catch (const std::exception& e) {
    const auto packed = hooks().pack ? hooks().pack(std::current_exception()) : std::nullopt;
    if (packed) {
      status = kPacked;
      text = *packed;
    } else {
      kind = type_name(e);
      text = e.what();
    }
  } catch (...) {
    kind = "an exception of unknown type";
  }
  const std::uint64_t sizes[] = {kind.size(), text.size()};
  area.reserve(sizeof sizes + kind.size() + text.size());
  std::memcpy(area.data(), sizes, sizeof sizes);
  std::memcpy(area.data() + sizeof sizes, kind.data(), kind.size());
  std::memcpy(area.data() + sizeof sizes + kind.size(), text.data(), text.size());
  return status;
}

/// False once the parent's end is closed, or the parent is gone.
bool next_request(int socket, pid_t parent, Request& request) {
  for (;;) {
    pollfd p{socket, POLLIN, 0};
    if (poll(&p, 1, 1000) < 0 && errno != EINTR) return false;
    if (getppid() != parent) return false;
    if (!(p.revents & (POLLIN | POLLHUP | POLLERR))) continue;
    const ssize_t n = recv(socket, &request, sizeof request, 0);
    if (n < 0 && errno == EINTR) continue;
    return n == sizeof request;
  }
}

void serve(int socket, pid_t parent, SharedArea& area, const ProcessPool::Work& work) {
  Request request;
  while (next_request(socket, parent, request)) {
    Reply reply;
    try {
      area.see(request.area);
      const std::vector<Row> rows = unpack(area.data());
      const Row made[] = {work(rows, {request.seed, request.epoch, request.sample, request.op})};
      area.reserve(packed_size(made));
      pack(made, area.data());
    } catch (...) {
      reply.status = pack_error(area);
    }
    reply.area = area.size();
    if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) return;
  }
}

/// What a fresh child is: alone, nice, deaf to Ctrl-C, and gone with its parent.
void settle(pid_t parent, bool by_main_thread) {
  // The system's signal comes when the thread that forked ends, so only the main thread may ask for it; without, the
  // child sees its parent gone when it next waits for a row.
  if (by_main_thread) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  setpriority(PRIO_PROCESS, 0, 19);
  pthread_setname_np(pthread_self(), "undertow-worker");
}

// ---- The parent's side.

std::string fate(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("was killed by signal {} ({}){}", signal, strsignal(signal),
                       signal == SIGKILL ? "; so is one that runs out of memory" : "");
  }
  return fmt::format("ended with status {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/// Waits up to `patience` for the child to end; kills it then. Its status; -1 where somebody else has reaped it.
int reap(pid_t pid, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  int status = 0;
  for (;;) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return status;
    if (got < 0 && errno != EINTR) return -1;
    if (std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(1ms);
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status;
}

template <typename E>
void throw_if(std::string_view kind, const std::string& text) {
  if (kind == E("").kind()) throw E(text);
}

}  // namespace

void set_fork_hooks(ForkHooks h) { hooks() = std::move(h); }

struct ProcessPool::Worker {
  explicit Worker(const std::string& pool) : area(pool) {}
  ~Worker() {
    if (socket < 0) return;
    {
      const std::lock_guard lock(open_ends().mutex);
      open_ends().sockets.erase(socket);
    }
    close(socket);
  }
  SharedArea area;
  pid_t pid = -1;
  int socket = -1;
  bool owes = false;   // a reply that nobody waits for any more
  bool ended = false;  // and reaped
};

/// A worker is taken until the last column in its memory is written.
class ProcessPool::Lease {
 public:
  Lease(std::shared_ptr<ProcessPool> pool, std::shared_ptr<Worker> worker)
      : pool_(std::move(pool)), worker_(std::move(worker)) {}
  ~Lease() { pool_->give_back(worker_); }
  Lease(const Lease&) = delete;

 private:
  std::shared_ptr<ProcessPool> pool_;
  std::shared_ptr<Worker> worker_;
};

std::shared_ptr<ProcessPool> ProcessPool::start(std::string name, const Work& work, int workers) {
  const std::shared_ptr<ProcessPool> pool(new ProcessPool(std::move(name)));
  for (int i = 0; i < workers; ++i) pool->fork_worker(work);
  pool->idle_ = pool->workers_;
  return pool;
}

void ProcessPool::fork_worker(const Work& work) {
  const auto worker = std::make_shared<Worker>(name_);
  int ends[2];
  UNDERTOW_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, RuntimeError,
                 "{}: no socket for a worker process: {}", name_, std::strerror(errno));
  std::vector<int> others;
  {
    const std::lock_guard lock(open_ends().mutex);
    others.assign(open_ends().sockets.begin(), open_ends().sockets.end());
    open_ends().sockets.insert(ends[0]);
  }
  worker->socket = ends[0];
  const pid_t parent = getpid();
  const bool by_main_thread = gettid() == parent;
  if (hooks().before) hooks().before();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    settle(parent, by_main_thread);
    close(ends[0]);
    for (const int socket : others) close(socket);
    try {
      if (hooks().in_child) hooks().in_child();
      serve(ends[1], parent, worker->area, work);
    } catch (...) {  // no memory for an error: the parent sees the end
      _exit(1);
    }
    std::fflush(nullptr);
    _exit(0);
  }
  const int error = errno;
  close(ends[1]);
  if (hooks().in_parent) hooks().in_parent();
  UNDERTOW_CHECK(pid > 0, RuntimeError, "{}: cannot start a worker process: {}", name_, std::strerror(error));
  worker->pid = pid;
  workers_.push_back(worker);
}

ProcessPool::~ProcessPool() {
  for (const auto& w : workers_) {
    if (w->ended) continue;
    if (w->owes || std::ranges::find(idle_, w) == idle_.end()) kill(w->pid, SIGKILL);
    shutdown(w->socket, SHUT_RDWR);
  }
  for (const auto& w : workers_)
    if (!w->ended) reap(w->pid, kFarewell);
}

bool ProcessPool::broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

std::shared_ptr<ProcessPool::Worker> ProcessPool::take(const RowContext& context) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!idle_.empty()) {
      auto worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
    UNDERTOW_CHECK(std::ranges::any_of(workers_, [](auto& w) { return !w->ended; }), DataError,
                   "all worker processes of {} have ended", name_);
    changed_.wait_for(lock, kTick);
    if (context.stop && context.stop->load(std::memory_order_relaxed)) throw Stopped();
  }
}

void ProcessPool::give_back(const std::shared_ptr<Worker>& worker) {
  {
    const std::lock_guard lock(mutex_);
    if (!worker->ended) idle_.push_back(worker);
  }
  changed_.notify_one();
}

void ProcessPool::ended(Worker& worker, const RowContext& context) {
  const int status = reap(worker.pid, kFarewell);
  {
    const std::lock_guard lock(mutex_);
    worker.ended = broken_ = true;
  }
  changed_.notify_all();
  throw DataError(fmt::format("worker process {} of {} {}, while it made row {} of epoch {}", worker.pid, name_,
                              fate(status), context.sample, context.epoch + 1));
}

void ProcessPool::send(Worker& worker, std::span<const Row> rows, const RowContext& context) {
  worker.area.reserve(packed_size(rows));
  pack(rows, worker.area.data());
  const Request request{worker.area.size(), context.seed, context.epoch, context.sample, context.op};
  if (::send(worker.socket, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) ended(worker, context);
  worker.owes = true;
}

std::uint64_t ProcessPool::receive(Worker& worker, const RowContext& context) {
  for (;;) {
    pollfd p{worker.socket, POLLIN, 0};
    const int n = poll(&p, 1, static_cast<int>(kTick.count()));
    if (n > 0) {
      Reply reply;
      const ssize_t got = recv(worker.socket, &reply, sizeof reply, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got != sizeof reply) ended(worker, context);
      worker.owes = false;
      worker.area.see(reply.area);
      return reply.status;
    }
    if (context.stop && context.stop->load(std::memory_order_relaxed)) throw Stopped();
  }
}

void ProcessPool::run(std::span<const Row> rows, const RowContext& context, LazyRow& out) {
  const std::shared_ptr<Worker> worker = take(context);
  const auto lease = std::make_shared<Lease>(shared_from_this(), worker);
  if (worker->owes) receive(*worker, context);  // for one who has stopped waiting
  send(*worker, rows, context);
  if (receive(*worker, context) == kRow) unpack(worker->area.data(), lease, out);
  else raise(worker->area.data());
}

void ProcessPool::raise(const std::byte* packed) const {
  std::uint64_t sizes[2];
  std::memcpy(sizes, packed, sizeof sizes);
  const auto* chars = reinterpret_cast<const char*>(packed) + sizeof sizes;
  const std::string kind(chars, sizes[0]), text(chars + sizes[0], sizes[1]);
  if (kind.empty() && hooks().rethrow) hooks().rethrow(text);
  throw_if<ValueError>(kind, text);
  throw_if<TypeError>(kind, text);
  throw_if<IndexError>(kind, text);
  throw_if<KeyError>(kind, text);
  throw_if<ShapeError>(kind, text);
  throw_if<FormatError>(kind, text);
  throw_if<FileError>(kind, text);
  throw_if<DeviceError>(kind, text);
  throw_if<RuntimeError>(kind, text);
  throw_if<TraceError>(kind, text);
  throw_if<DataError>(kind, text);
  throw DataError(fmt::format("{} threw {}: {}", name_, kind, text));
}

}  // namespace undertow::data
