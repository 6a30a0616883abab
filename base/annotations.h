// Clang's thread-safety annotations (-Wthread-safety); empty for other compilers.
#pragma once

#if defined(__clang__)
#define TUCK_ANNOTATE(x) __attribute__((x))
#else
#define TUCK_ANNOTATE(x)
#endif

#define TUCK_CAPABILITY(name) TUCK_ANNOTATE(capability(name))
#define TUCK_SCOPED_CAPABILITY TUCK_ANNOTATE(scoped_lockable)
#define TUCK_GUARDED_BY(lock) TUCK_ANNOTATE(guarded_by(lock))
#define TUCK_PT_GUARDED_BY(lock) TUCK_ANNOTATE(pt_guarded_by(lock))
#define TUCK_REQUIRES(...) TUCK_ANNOTATE(requires_capability(__VA_ARGS__))
#define TUCK_ACQUIRE(...) TUCK_ANNOTATE(acquire_capability(__VA_ARGS__))
#define TUCK_TRY_ACQUIRE(...) TUCK_ANNOTATE(try_acquire_capability(__VA_ARGS__))
#define TUCK_RELEASE(...) TUCK_ANNOTATE(release_capability(__VA_ARGS__))
#define TUCK_EXCLUDES(...) TUCK_ANNOTATE(locks_excluded(__VA_ARGS__))
#define TUCK_NO_THREAD_SAFETY_ANALYSIS TUCK_ANNOTATE(no_thread_safety_analysis)
