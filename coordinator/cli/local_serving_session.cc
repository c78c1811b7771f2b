#include "coordinator/cli/local_serving_session.h"

#include <utility>

#include "common/base/status_macros.h"

namespace weft {
namespace {

class LocalServingSession final : public ServingSession {
 public:
  explicit LocalServingSession(std::unique_ptr<LocalSession> session)
      : session_(std::move(session)) {}

  ModelRunner& runner() override { return session_->runner(); }
  absl::Status lost() override {
    return session_->fleet() == nullptr ? absl::OkStatus() : session_->fleet()->lost();
  }
  int64_t stages() const override { return session_->stages(); }

 private:
  std::unique_ptr<LocalSession> session_;
};

}  // namespace

OpenServingSession OpenLocalServingSession(const ModelFlags& flags, const SessionNeeds& needs,
                                           const Clock& clock, Logger& logger) {
  return [flags, needs, &clock, &logger]() -> absl::StatusOr<std::unique_ptr<ServingSession>> {
    const SamplerOptions usual;
    SessionNeeds all = needs;
    all.sampler = &usual;
    ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session,
                     LocalSession::Open(flags, all, clock, logger));
    return std::make_unique<LocalServingSession>(std::move(session));
  };
}

}  // namespace weft
