// SPDX-License-Identifier: Apache-2.0
// base/error.h: one exception family with stable names. Each maps to the Python built-in that users expect.
//
// A message says what is wrong, where (op, cell path, row, file, offset), what was expected and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace undertow {

/// Root of the family.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual const char* kind() const noexcept { return "Error"; }
  /// A copy of the same kind with `note` appended on a line of its own.
  [[noreturn]] virtual void rethrow_with(const std::string& note) const {
    throw Error(std::string(what()) + "\n" + note);
  }
};

#define UNDERTOW_ERROR(name)                                              \
  class name : public Error {                                             \
   public:                                                                \
    using Error::Error;                                                   \
    const char* kind() const noexcept override { return #name; }          \
    [[noreturn]] void rethrow_with(const std::string& n) const override { \
      throw name(std::string(what()) + "\n" + n);                         \
    }                                                                     \
  };
UNDERTOW_ERROR(ValueError)    ///< an argument's value is not allowed (Python ValueError)
UNDERTOW_ERROR(TypeError)     ///< an argument's type or dtype is not allowed (Python TypeError)
UNDERTOW_ERROR(IndexError)    ///< an index is out of range (Python IndexError)
UNDERTOW_ERROR(KeyError)      ///< a name is not known (Python KeyError)
UNDERTOW_ERROR(ShapeError)    ///< shapes do not fit (Python ValueError)
UNDERTOW_ERROR(DataError)     ///< the data pipeline failed (Python RuntimeError)
UNDERTOW_ERROR(FormatError)   ///< a file is not what it should be (Python ValueError)
UNDERTOW_ERROR(FileError)     ///< a file or folder is missing or cannot be used (Python FileNotFoundError)
UNDERTOW_ERROR(DeviceError)   ///< a device or one of its libraries failed or is unknown (Python RuntimeError)
UNDERTOW_ERROR(RuntimeError)  ///< a call in a state that does not allow it (Python RuntimeError)
UNDERTOW_ERROR(TraceError)    ///< `construct` did what cannot be traced (Python RuntimeError)
#undef UNDERTOW_ERROR

/// The host asked to stop (Ctrl-C). Not an Error: nothing went wrong.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace undertow
