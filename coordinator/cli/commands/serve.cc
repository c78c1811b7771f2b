// weft serve: the model behind an OpenAI-compatible API.
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/cli/chat_template_file.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/local_serving_session.h"
#include "coordinator/cli/sampler_flags.h"
#include "coordinator/engine/runner_options.h"
#include "coordinator/grammar/tokenizer_trie.h"
#include "coordinator/http/api_keys.h"
#include "coordinator/http/grammar_constraints.h"
#include "coordinator/http/http_server.h"
#include "coordinator/http/metrics.h"
#include "coordinator/http/template_format.h"
#include "coordinator/serving/inference_loop.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 4096;
// Sequences rarely reach the whole context; where they do, some wait.
constexpr int64_t kDefaultCacheContexts = 4;
// For the last replies to reach their clients, at the end.
constexpr std::chrono::seconds kReplyTime{3};

struct ServeFlags {
  ModelFlags model;
  SamplerFlags sampler;
  HttpServerOptions http;
  ServingOptions serving;
  std::string key_file;
  std::string chat_template;  // a file
  int64_t parallel = 16;
  int64_t cache_tokens = 0;
  double drain_seconds = 30;
};

// Signals that end the server. Blocked in all threads, so that Await gets them.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void Await() {
    int signal = 0;
    while (sigwait(&signals_, &signal) != 0) {
    }
  }
  // Whether there was one within that time.
  bool AwaitFor(std::chrono::milliseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec limit = {seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
    return sigtimedwait(&signals_, nullptr, &limit) > 0;
  }
  // The next one ends the process as it would without us.
  void Unblock() { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_ = {};
};

absl::Status CheckServeFlags(const ServeFlags& flags) {
  if (flags.parallel < 1 || flags.parallel > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parallel: ", flags.parallel, ", want 1 to 1024"));
  }
  if (flags.cache_tokens < 0 || flags.cache_tokens > kMaxCacheTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cache-tokens: ", flags.cache_tokens, ", want 0 to ", kMaxCacheTokens));
  }
  if (flags.serving.most_waiting < 1 || flags.serving.most_waiting > 100000) {
    return absl::InvalidArgumentError(
        absl::StrCat("--queue: ", flags.serving.most_waiting, ", want 1 to 100000"));
  }
  if (!(flags.drain_seconds >= 0 && flags.drain_seconds <= 86400)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--drain-seconds: ", flags.drain_seconds, ", want 0 to 86400"));
  }
  return absl::OkStatus();
}

// Workers that join may come hours later; only a signal ends the wait. False: it did.
bool AwaitJoins(const FleetFlags& flags, EndSignals& signals, CommandContext& context) {
  constexpr std::chrono::milliseconds kPeriod{200};
  if (flags.workers_join.empty() || flags.directory->Started()) return true;
  context.logger.Info(absl::StrCat("waiting for ", flags.join_workers, " workers to join"));
  while (!flags.directory->Started()) {
    if (signals.AwaitFor(kPeriod)) return false;
  }
  return true;
}

absl::Status Serve(ServeFlags& flags, CommandContext& context) {
  RETURN_IF_ERROR(CheckServeFlags(flags));
  EndSignals signals;
  HttpServerOptions http = flags.http;
  ASSIGN_OR_RETURN(http.sampler, ParseSamplerFlags(flags.sampler, 0));
  if (!flags.key_file.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> keys, ReadApiKeys(flags.key_file));
    http.api_keys.insert(http.api_keys.end(), keys.begin(), keys.end());
  }
  RETURN_IF_ERROR(CheckReach(http));
  // Read here too: tokenizer and template stay while sessions come and go.
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(flags.model.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(file->metadata()));
  RETURN_IF_ERROR(ResolveSamplerTokens(flags.sampler, *tokenizer, http.sampler));
  ASSIGN_OR_RETURN(ChatTemplate chat_template,
                   ReadChatTemplate(flags.chat_template, *file, *tokenizer));
  const std::shared_ptr<const TokenTrie> trie = MakeTokenTrie(*tokenizer);
  const TemplateFormat chat(std::move(chat_template), *tokenizer, trie);
  if (http.model_name.empty()) {
    http.model_name = std::filesystem::path(flags.model.model).stem().string();
  }
  const SessionNeeds needs{.context = kDefaultContext,
                           .sequences = flags.parallel,
                           .cache_tokens = flags.cache_tokens,
                           .cache_contexts = kDefaultCacheContexts,
                           .prepare_all = true,
                           .hidden = true};

  ASSIGN_OR_RETURN(flags.model.fleet.directory,
                   OpenWorkerDirectory(flags.model.fleet, context.logger));
  if (!AwaitJoins(flags.model.fleet, signals, context)) return absl::OkStatus();
  flags.model.fleet.watch = true;
  FleetBoard board;
  ASSIGN_OR_RETURN(const std::unique_ptr<InferenceLoop> loop,
                   InferenceLoop::Start(OpenLocalServingSession(flags.model, needs, context.clock,
                                                                context.logger, &board),
                                        *tokenizer, flags.serving, context.clock, context.logger));
  LoopEngine engine(*loop);
  const GrammarConstraints constraints(trie);
  const HttpServer::Parts parts{.engine = &engine,
                                .tokenizer = tokenizer.get(),
                                .chat = &chat,
                                .constraints = &constraints,
                                .fleet = &board};
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                   HttpServer::Start(http, parts, context.clock, context.logger));
  context.logger.Info(StdView(absl::StrCat("listening on http://", http.host, ":", server->port(),
                                           " (health on ", server->health_port(), ")")));
  signals.Await();
  signals.Unblock();
  context.logger.Info("shutting down: what is under way is finished first");
  server->Drain();
  const auto drain = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(flags.drain_seconds));
  if (!loop->Drain(context.clock.Now() + drain)) {
    context.logger.Warning("some requests were not finished in time");
  }
  // Whoever still waits is told, and all replies go out before the connections are cut.
  loop->Stop();
  server->AwaitReplies(context.clock.Now() + kReplyTime);
  return absl::OkStatus();
}

void AddHttpFlags(CLI::App& command, ServeFlags& flags) {
  HttpServerOptions& http = flags.http;
  command.add_option("--host", http.host, "address to listen on")->capture_default_str();
  command.add_option("--port", http.port, "port of the API; 0: any free one")
      ->capture_default_str();
  command
      .add_option("--health-port", http.health_port,
                  "port of health and metrics; -1: the next one; 0: any free one")
      ->capture_default_str();
  CLI::Option* const key =
      command
          .add_option("--api-key", http.api_keys, "a key that clients must have; may be repeated")
          ->check([](const std::string& text) {
            return IsApiKey(text) ? std::string()
                                  : "want up to 1024 bytes without control characters";
          });
  CLI::Option* const key_file =
      command.add_option("--api-key-file", flags.key_file, "a file of such keys, one a line");
  command
      .add_flag("--no-api-key", http.no_api_key,
                "whoever reaches --host may use the API, on other addresses than loopback too")
      ->excludes(key)
      ->excludes(key_file);
  command.add_option("--metrics-token-file", http.metrics_token_file,
                     "file with a token for /metrics on the port of health; read again when it "
                     "changes");
  command.add_option("--cors-origin", http.cors_origins,
                     "an origin whose pages may use the API; may be repeated");
  command.add_option("--allowed-host", http.allowed_hosts,
                     "a name by which clients may call the server; may be repeated");
  command.add_option("-a,--alias", http.model_name, "the model's name in the API");
  command.add_option("--chat-template", flags.chat_template,
                     "a file with a Jinja template to use instead of the model's");
}

}  // namespace

void AddServeCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "an OpenAI-compatible API over HTTP");
  command->footer("Example: weft serve -m model.gguf --local-workers 2 --port 8080");
  AddModelFlags(*command, flags->model);
  AddSamplerFlags(*command, flags->sampler);
  AddHttpFlags(*command, *flags);
  command
      ->add_option("-P,--np,--parallel", flags->parallel, "most sequences at the same time (-np)")
      ->capture_default_str();
  command->add_option("--cache-tokens", flags->cache_tokens,
                      "tokens that the KV cache holds, of all sequences; 0: four contexts");
  command
      ->add_option("--queue", flags->serving.most_waiting,
                   "most requests that wait; others are refused with 429")
      ->capture_default_str();
  command
      ->add_option("--drain-seconds", flags->drain_seconds,
                   "how long requests may go on after SIGTERM")
      ->capture_default_str();
  // A version flag is obeyed before the parser asks for a model; it adds the last line's end.
  command->set_version_flag(
      "--print-metrics", [] { return std::string(absl::StripSuffix(MetricsTable(), "\n")); },
      "list the metrics that the server can have");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Serve(*flags, context); }; });
}

}  // namespace weft
