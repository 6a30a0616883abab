# Prints a C++ file that takes the compiler about a mebibyte for every UNITS: containers, regular
# expressions and lambdas over types of its own. Usage: awk -v units=N -f cc1plus.awk

BEGIN {
  split("algorithm functional map memory numeric regex set string tuple unordered_map variant vector", headers, " ")
  for (i = 1; i in headers; i++) printf "#include <%s>\n", headers[i]
  for (n = 0; n < units; n++) {
    printf "namespace shop%d {\n", n
    printf "struct Item { int id; double price_%d; std::string name; bool operator<(const Item& o) const { return id < o.id; } };\n", n
    printf "struct Order { std::vector<Item> items; std::map<std::string, Item> by_name; std::set<Item> unique; };\n"
    printf "using Value = std::variant<int, double, std::string, Item, Order>;\n"
    printf "template <class T> struct Table { std::unordered_map<std::string, T> rows; std::function<bool(const T&)> filter;\n"
    printf "  std::vector<T> select() const { std::vector<T> out; for (auto& [key, row] : rows) if (filter(row)) out.push_back(row); return out; } };\n"
    printf "double total_%d(const Order& order) { return std::accumulate(order.items.begin(), order.items.end(), 0.0, [](double sum, const Item& item) { return sum + item.price_%d * %d; }); }\n", n, n, n % 13 + 1
    printf "bool matches_%d(const std::string& text) { static const std::regex pattern(\"([a-z]+%d)-(\\\\d{%d,})\"); return std::regex_search(text, pattern); }\n", n, n, n % 5 + 1
    printf "std::vector<Item> sorted_%d(Table<Item> table) { table.filter = [](const Item& item) { return item.id > %d; }; auto rows = table.select(); std::sort(rows.begin(), rows.end()); return rows; }\n", n, n
    printf "std::string show_%d(const Value& value) { return std::visit([](const auto& v) -> std::string { using T = std::decay_t<decltype(v)>; if constexpr (std::is_arithmetic_v<T>) return std::to_string(v); else return \"value %d\"; }, value); }\n", n, n
    printf "std::tuple<Order, Table<Order>> make_%d() { Order order; order.items.push_back({%d, %d.5, \"item %d\"}); order.by_name.emplace(\"item\", order.items[0]); order.unique.insert(order.items[0]); return {order, {}}; }\n", n, n, n, n
    printf "}\n"
  }
}
