#include "pages.h"

#include <stdbool.h>
#include <string.h>

enum {
  kVocabulary = 2048,
  kTokenBytes = 16,
  kBlockBytes = 512,
  kBlockWords = kBlockBytes / 8,
};

struct Token {
  char text[kTokenBytes];
  size_t length;
};

static struct Token vocabulary[kVocabulary];
static uint64_t run_seed;
static bool only_noise;

struct Random {
  uint64_t state;
};

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static uint64_t next(struct Random* random) {
  random->state += UINT64_C(0x9e3779b97f4a7c15);
  return scramble(random->state);
}

uint64_t pages_mix(uint64_t a, uint64_t b) {
  return scramble(scramble(a + run_seed) ^ (b + 1));
}

uint64_t pages_name(uint64_t page, unsigned version) {
  return page << 16 | version;
}

void pages_init(uint64_t seed) {
  static const char kConsonants[] = "tnsrhldcmfpgwbvk";
  static const char kVowels[] = "eaoiueao";
  run_seed = seed;
  struct Random random = {seed};
  for (size_t i = 0; i < kVocabulary; i++) {
    struct Token* token = &vocabulary[i];
    uint64_t bits = next(&random);
    /* Frequent words, which have the low numbers, are short, as in a language. */
    size_t length = 2 + (bits & 3) + (i > 64 ? 2 : 0) + (i > 512 ? bits >> 2 & 3 : 0);
    bits >>= 4;
    for (size_t letter = 0; letter < length; letter++, bits >>= 4)
      token->text[letter] = letter % 2 ? kVowels[bits & 7] : kConsonants[bits & 15];
    token->text[length] = ' ';
    token->length = length + 1;
  }
}

void pages_only_noise(void) {
  only_noise = true;
}

static void put_text(struct Random* random, char* out) {
  char text[kBlockBytes + kTokenBytes];
  size_t length = 0;
  while (length < kBlockBytes) {
    uint64_t bits = next(random);
    for (int i = 0; i < 2; i++, bits >>= 32) {
      /* The product of three uniform numbers: low numbers come often, high ones seldom. */
      size_t chosen =
          (size_t)(((bits & 0x7ff) * (bits >> 11 & 0x3ff) * (bits >> 21 & 0x3ff)) >> 20);
      const struct Token* token = &vocabulary[chosen];
      if (length < kBlockBytes) memcpy(text + length, token->text, kTokenBytes);
      length += token->length;
    }
  }
  memcpy(out, text, kBlockBytes);
}

/* What a heap is full of: addresses near each other, small counts, links that are null. */
static void put_pointers(struct Random* random, uint64_t* out) {
  uint64_t base = UINT64_C(0x00007f0000000000) | (next(random) & 0xffff000000);
  for (size_t i = 0; i < kBlockWords; i += 4) {
    uint64_t bits = next(random);
    out[i] = base + (bits & 0xffff) * 16;
    out[i + 1] = bits >> 16 & 0x7;
    out[i + 2] = base;
    out[i + 3] = 0;
  }
}

static void put_numbers(struct Random* random, uint64_t* out) {
  for (size_t i = 0; i < kBlockWords; i++) {
    uint64_t bits = next(random);
    out[i] = (bits & 0x3ff) | (bits >> 10 & 0x3) << 32;
  }
}

static void put_noise(struct Random* random, uint64_t* out) {
  for (size_t i = 0; i < kBlockWords; i++)
    out[i] = next(random);
}

void pages_make(uint64_t page, unsigned version, uint64_t out[kPageWords]) {
  if (version == 0) {
    memset(out, 0, kPageBytes);
    return;
  }
  struct Random random = {pages_mix(page, version)};
  uint64_t kinds = next(&random);
  for (size_t at = 0; at < kPageWords; at += kBlockWords, kinds >>= 4) {
    uint64_t kind = only_noise ? 15 : kinds & 15;
    if (kind < 3)
      put_text(&random, (char*)(out + at));
    else if (kind < 9)
      put_pointers(&random, out + at);
    else if (kind < 10)
      put_numbers(&random, out + at);
    else if (kind < 15)
      memset(out + at, 0, kBlockBytes);
    else
      put_noise(&random, out + at);
  }
  out[0] = pages_name(page, version);
}
