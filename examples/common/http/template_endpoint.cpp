// SPDX-License-Identifier: Apache-2.0
#include <http/answers.hpp>
#include <http/chat.hpp>
#include <http/connection.hpp>
#include <http/memory.hpp>
#include <http/template_endpoint.hpp>
#include <http/work.hpp>

namespace serve {

std::string prompt_of(Chat const& chat, House const& house, httplib::Request const& request) {
  auto const until = Clock::now() + house.bounds.time;
  Turn const turn(house.preparing, Connection::current()->client(), static_cast<double>(1000 + request.body.size()),
                  until);
  Work const work(until);
  Account::Naming const naming("messages");
  if (auto* const account = Account::current(); account != nullptr) {  // says before whether there is room for it
    auto bytes = chat.tools.json.size() + request.body.size();
    for (auto const& one : chat.messages) bytes += 750 + one.content.size() + 750 * one.calls.size();
    account->take(6 * bytes), account->give(6 * bytes);
  }
  return house.backend.chat(chat);
}

Endpoint templating() {
  return {"/apply-template", true,
          [](House const& house, httplib::Request const& request, httplib::Response& response) {
            Fields fields(request.body);
            auto const chat = read_chat(fields);
            fields.finish();
            send(response, 200, {{"prompt", prompt_of(chat, house, request)}});
          }};
}

}  // namespace serve
