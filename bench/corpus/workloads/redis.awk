# Prints commands for redis-cli --pipe: records first … first + count - 1 of a fixed data set of sessions
# (JSON), user hashes, lists, sorted sets and counters. Usage: awk -v first=N -v count=N -f redis.awk

function random(below) {
  state = state * 16807 % 2147483647
  return state % below
}

# Bytes that look already compressed (as a token or a picture does), in hex.
function token(length_, text, i) {
  text = ""
  for (i = 0; i < length_; i += 4) text = text sprintf("%04x", random(65536))
  return text
}

BEGIN {
  state = first + 1
  split("Oslo Lima Pune Kyoto Quito Accra Turin Perth", cities, " ")
  split("view cart pay search login logout", events, " ")
  for (n = first; n < first + count; n++) {
    printf "HSET user:%d name \"User %d\" mail user%d@example.org city %s age %d since %d\n", \
      n, random(90000), n, cities[1 + random(8)], 18 + random(60), 1500000000 + random(200000000)
    printf "SET session:%s '{\"user\":%d,\"started\":%d,\"agent\":\"Mozilla/5.0 (X11; Linux x86_64)\",\"token\":\"%s\",\"flags\":[%d,%d]}'\n", \
      token(16), n, 1500000000 + random(200000000), token(32), random(8), random(8)
    if (n % 4 == 0) {
      for (i = 0; i < 8; i++) printf "RPUSH log:%d \"%s %d page/%d\"\n", n, events[1 + random(6)], 1600000000 + n * 60 + i, random(1000)
    }
    if (n % 8 == 0) printf "ZADD score:%d %d user:%d %d user:%d\n", n % 500, random(10000), n, random(10000), random(n + 1)
    if (n % 16 == 0) printf "SET thumbnail:%d \"%s\"\n", n, token(600)
    printf "INCRBY visits:%d %d\n", n % 5000, random(50)
  }
}
