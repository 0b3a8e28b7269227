/* model_config.h: sizes of a unit of nothing but time, written by hand as the printer writes them. */
#ifndef MB2FMU_MODEL_CONFIG_H
#define MB2FMU_MODEL_CONFIG_H

#ifndef MB2FMU_FMI
#define MB2FMU_FMI 2
#endif
#ifndef MB2FMU_TOKEN
#define MB2FMU_TOKEN "0b5b1a56-6b0e-5d5c-8e52-6ad1d0c7a001"
#endif
#define MB2FMU_MODEL_IDENTIFIER "bare"
#define MB2FMU_MODEL_NAME "bare"

#define MB2FMU_N_STATES 0
#define MB2FMU_N_COORDINATES 0
#define MB2FMU_N_INPUTS 0
#define MB2FMU_N_PARAMETERS 0
#define MB2FMU_N_CALCULATED 0
#define MB2FMU_N_POSITION 0
#define MB2FMU_N_VELOCITY 0
#define MB2FMU_N_ACCELERATION 0
#define MB2FMU_N_DEPENDENT_SPEEDS 0
#define MB2FMU_N_ACCELERATIONS 0
#define MB2FMU_N_VARIABLES 1

#define MB2FMU_DEFAULT_SOLVER 1
#define MB2FMU_DEFAULT_TOLERANCE 1e-8
#define MB2FMU_DEFAULT_INTERNAL_STEP 0.0
#define MB2FMU_DEFAULT_START 0.0
#define MB2FMU_DEFAULT_STOP 10.0
#define MB2FMU_DEFAULT_STEP 0.01

#endif
