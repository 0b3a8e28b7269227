/* main.c: integrates the default experiment and prints it as comma-separated values: time, states, outputs.
 *
 * Included by the generated file <name>_main.c, which has the names and the inputs, held over each communication step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_header(void)
{
    printf("time");
    for (int i = 0; i < MB2FMU_UNIT(n_states); i++) {
        printf(",%s", MB2FMU_UNIT(state_names)[i]);
    }
    for (int i = 0; i < MB2FMU_UNIT(n_outputs); i++) {
        printf(",%s", MB2FMU_UNIT(output_names)[i]);
    }
    printf("\n");
}

/* One line; 0, or the number of the solve that failed. */
static int print_line(MB2FMU_UNIT(model) * model, const double x[], const double r[], double y[])
{
    const int failed = MB2FMU_UNIT(outputs)(model, MB2FMU_UNIT(time)(model), x, r, y);
    printf("%.17g", MB2FMU_UNIT(time)(model));
    for (int i = 0; i < MB2FMU_UNIT(n_states); i++) {
        printf(",%.17g", x[i]);
    }
    for (int i = 0; i < MB2FMU_UNIT(n_outputs); i++) {
        printf(",%.17g", y[i]);
    }
    printf("\n");
    return failed;
}

int main(void)
{
    static double x[MAIN_STATES], y[MAIN_OUTPUTS];
    MB2FMU_UNIT(model) *const model = MB2FMU_UNIT(create)();
    const double *r = main_inputs[0];
    int failed;
    if (model == NULL) {
        fprintf(stderr, "no memory\n");
        return EXIT_FAILURE;
    }
    failed = MB2FMU_UNIT(start)(model, MAIN_START, r, x);
    print_header();
    for (long k = 0; failed == 0 && k < MAIN_STEPS; k++) {
        const double *const held = main_inputs[MAIN_STEADY ? 0 : k];
        failed = print_line(model, x, r, y);
        if (failed == 0) {
            if (MB2FMU_UNIT(n_inputs) > 0 && memcmp(held, r, sizeof main_inputs[0]) != 0) {
                MB2FMU_UNIT(inputs_changed)(model);
            }
            r = held;
            failed = MB2FMU_UNIT(step)(model, MAIN_STEP, r, x);
        }
    }
    failed = failed != 0 ? failed : print_line(model, x, r, y);
    if (failed != 0) {
        fprintf(stderr, "t = %.9g s: %s\n", MB2FMU_UNIT(time)(model), MB2FMU_UNIT(message)(model));
    }
    MB2FMU_UNIT(destroy)(model);
    return failed != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
