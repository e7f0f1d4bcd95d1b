// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/compute_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "undertow/ops/print.h"

namespace undertow::runtime {
namespace {

class ComputeThread {
 public:
  ComputeThread() : owner_(getpid()), thread_([this] { loop(); }) {
    pthread_setname_np(thread_.native_handle(), "undertow-step");
    thread_.detach();  // lives as long as the process
  }

  void run(const std::function<void()>& job, const std::function<void()>& tick, std::chrono::milliseconds period) {
    const std::lock_guard turn(turn_);
    std::unique_lock lock(mutex_);
    job_ = &job;
    error_ = nullptr;
    start_.notify_one();
    std::exception_ptr print_error;
    const auto drain = [&] {
      try {
        ops::drain_prints();
      } catch (...) {  // later: the job is still running
        if (!print_error) print_error = std::current_exception();
      }
    };
    while (job_) {
      if (done_.wait_for(lock, period, [this] { return !job_; })) break;
      lock.unlock();
      drain();
      tick();  // must not throw: the job is still running
      lock.lock();
    }
    const std::exception_ptr error = std::exchange(error_, nullptr);
    lock.unlock();
    drain();
    if (error) std::rethrow_exception(error);
    if (print_error) std::rethrow_exception(print_error);
  }
  void run_here(const std::function<void()>& job) {
    const std::lock_guard turn(turn_);
    job();
  }
  pid_t owner() const { return owner_; }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      start_.wait(lock, [this] { return job_ != nullptr; });
      lock.unlock();
      std::exception_ptr error;
      try {
        (*job_)();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
      job_ = nullptr;
      done_.notify_one();
    }
  }

  pid_t owner_;
  std::mutex turn_, mutex_;
  std::condition_variable start_, done_;
  const std::function<void()>* job_ = nullptr;
  std::exception_ptr error_;
  std::thread thread_;
};

ComputeThread& compute_thread() {
  static std::mutex mutex;
  static ComputeThread* thread = nullptr;  // never destroyed; a forked child leaves its parent's behind
  const std::lock_guard lock(mutex);
  if (!thread || thread->owner() != getpid()) thread = new ComputeThread;
  return *thread;
}

}  // namespace

void run_on_compute_thread(const std::function<void()>& job, const std::function<void()>& tick,
                           std::chrono::milliseconds period) {
  compute_thread().run(job, tick, period);
}

void run_in_its_place(const std::function<void()>& job) { compute_thread().run_here(job); }

}  // namespace undertow::runtime
