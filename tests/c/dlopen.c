/* A plugin host: the library is loaded and unloaded, on threads that end afterwards. The first argument is
 * its path. */

#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

static const char *path;

/* A function pointer out of an object pointer, as POSIX has it. */
#define LOAD(library, function) *(void **)&function = dlsym(library, "tidegate_" #function)

static void *load_use_unload(void *nothing)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("    %s\n", dlerror());
        return "cannot be loaded";
    }
    tidegate_status (*gate_new)(const tidegate_config *, const char *, size_t, tidegate_gate **, char *,
                                size_t);
    tidegate_status (*try_admit)(const tidegate_gate *, int32_t, int64_t, uint64_t *);
    tidegate_status (*release)(const tidegate_gate *, uint64_t, int32_t);
    uint32_t (*abi_version)(void);
    void (*gate_free)(tidegate_gate *);
    LOAD(library, gate_new);
    LOAD(library, try_admit);
    LOAD(library, release);
    LOAD(library, abi_version);
    LOAD(library, gate_free);
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    tidegate_gate *gate;
    uint64_t permit;
    int well = abi_version() == TIDEGATE_ABI_VERSION &&
               gate_new(&config, "plugin", 6, &gate, NULL, 0) == TIDEGATE_ADMITTED &&
               try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit) == TIDEGATE_ADMITTED &&
               release(gate, permit, TIDEGATE_OUTCOME_SUCCESS) == TIDEGATE_ADMITTED;
    gate_free(gate);
    dlclose(library);
    return well ? nothing : "does not work";
}

static void it_is_loaded_and_unloaded_on_threads(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *wrong = NULL;
        pthread_create(&thread, NULL, load_use_unload, NULL);
        pthread_join(thread, &wrong);
        CHECK(wrong == NULL);
    }
}

static void it_stays_in_memory(void)
{
    void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(still != NULL);
    if (still)
        dlclose(still);
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    path = arguments[1];
    RUN(it_is_loaded_and_unloaded_on_threads);
    RUN(it_stays_in_memory);
    return failed_tests != 0;
}
