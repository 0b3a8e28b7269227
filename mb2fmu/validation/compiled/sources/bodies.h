/* Newton-Euler equations of bodies that hang together by local relations, at one state at a time.

   Written apart from mechanics/mechanism/numeric/numeric_mechanism_evaluation.py, which has the same from the same records with partial velocities as
   matrices; here forces go from the bodies back to the origin and give the generalized forces on their way (the
   principle of virtual power), and every column of the mass matrix is what such a walk gives for one acceleration of 1:
   from all bodies that move with it, or, where these move as one rigid whole, from their resultant. Particles of a
   flexible body give sums over them once, for all columns. */
#ifndef MB2FMU_BODIES_H
#define MB2FMU_BODIES_H

#include <stdint.h>

/* Writes results[0], results[1], ... from the values w: one each for ``count`` rows of ``places``. */
typedef void (*function_of_values)(const double w[], const int64_t places[], int64_t count, double results[]);

/* Expressions that are alike, or (``places`` NULL) any ones that are evaluated together. */
struct group {
    function_of_values function;
    const int64_t *places;
    int64_t count;
    int64_t first; /* the results go to w[first], ... */
};

struct groups {
    const struct group *groups;
    int64_t count;
};

/* Vectors written in frames. The numbers of one: partial derivatives by its speeds (3 each), then the vector, its rate
   and the rate of that (3 each), in the frame's components. */
struct terms {
    int64_t count;
    const int64_t *frame;
    const int64_t *numbers;  /* place of the first one among all gathered numbers */
    const int64_t *speeds;   /* how many */
    const int64_t *columns;  /* of all terms, one after the other: which speeds */
    const int64_t *begin;    /* of each term among ``columns`` */
};

/* A sum over the terms on the path to each node. */
struct path_sums {
    int64_t count;
    const int64_t *order; /* nodes, those above first */
    const int64_t *above; /* -1: none */
    const int64_t *first; /* the node's own terms: first, first + 1, ... */
    const int64_t *terms; /* how many */
};

/* What acts: sign * factor * (three numbers, in a frame) on a point or frame. */
struct pieces {
    int64_t count;
    const int64_t *node;
    const int64_t *frame;
    const int64_t *vector; /* places among w */
    const int64_t *factor; /* place among w, or -1: 1 */
    const double *sign;
};

/* Force along straight segments through points. */
struct pathways {
    int64_t count;
    const int64_t *first; /* of each among ``points``, and one more */
    const int64_t *points;
    const int64_t *length; /* where its length goes in w; its rate goes behind it */
    const int64_t *force; /* place among w */
};

enum sensed { SENSED_POSITION, SENSED_VELOCITY, SENSED_OMEGA };

/* Vectors of the motion that expressions name. */
struct sensed_vectors {
    int64_t count;
    const int64_t *kind; /* an ``enum sensed`` */
    const int64_t *node; /* number of the point, or of the frame */
    const int64_t *place; /* where its three components go in w */
};

/* Entries of a matrix that are not zero: place among w. */
struct entries {
    int64_t count;
    const int64_t *row;
    const int64_t *column;
    const int64_t *place;
};

enum { COMPOSITE = 13 }; /* mass, first moment, inertia row by row; in N */

/* Bodies that go with a point as one rigid whole, piece by piece; pieces that are composites come before. */
struct composites {
    int64_t count;
    const int64_t *begin;      /* of each among the pieces, and one more */
    const int64_t *piece;      /* a body, or -1 - number of a composite */
    const int64_t *path_begin; /* of each piece among ``path``, and one more */
    const int64_t *path;       /* terms of points that lead from the composite's point to the piece's */
};

/* Particles that are displaced from one point in one frame, those of a flexible body: one whole whose parts move. */
struct particle_groups {
    int64_t count;
    const int64_t *point;         /* from which they are displaced */
    const int64_t *frame;
    const int64_t *begin;         /* of each among ``body`` and ``term``, and one more */
    const int64_t *body;
    const int64_t *term;          /* of points: the displacement */
    const int64_t *speeds_begin;  /* of each among ``speeds``, and one more */
    const int64_t *speeds;        /* of the displacements */
    const int64_t *local;         /* of each of the terms' columns: place among the group's speeds */
    const int64_t *numbers_begin; /* of each among the numbers that its particles give, and one more */
    const int64_t *groups_begin;  /* of each column of the mass matrix, n_u + 1 */
    const int64_t *groups_of;     /* groups that its speed moves; none where it moves a rigid whole */
};

/* Speeds that move one rigid whole about a point (turns), or along: where its resultant acts. */
struct rigid {
    const int64_t *node;  /* frame or point whose terms have the speed; -1: the speed moves no rigid whole */
    const int64_t *turns;
    const int64_t *composite;
    const int64_t *point; /* -1: the origin */
    const int64_t *frame; /* -1: none is needed */
    const int64_t *rows_begin; /* of each column of the mass matrix, n_u + 1 */
    const int64_t *rows;       /* rows that the column gives, and the same columns of its row */
};

/* Bodies, points or frames on links: which one, the speed of its link, and for all but frames the terms of points that
   lead from the link's point to it. */
struct places {
    int64_t count;
    const int64_t *node;
    const int64_t *link;
    const int64_t *path_begin; /* of each among ``path``, and one more */
    const int64_t *path;
};

/* A tree of rigid links with one speed each; a link's point is that of ``struct rigid``. */
struct articulated {
    int64_t count; /* of links, n_u; 0: the mechanism is no such tree */
    const int64_t *order; /* speeds, those nearer to the ground first */
    const int64_t *parent; /* of each speed: that of the link before, -1: the ground */
    const int64_t *path_begin; /* of each speed: terms of points between the two links' points, and one more */
    const int64_t *path;
    const int64_t *sign; /* 1: they lead from the link before to the link, -1: back */
    struct places bodies;
    struct places points; /* on which there are forces */
    struct places frames;
};

/* Of a frame, of a point, of a speed; all components are in N. The last four are over all speeds, row by row. */
enum quantity {
    ROTATION,
    OMEGA,
    ALPHA,
    POSITION,
    VELOCITY,
    ACCELERATION,
    MOMENTUM,
    MASS_MATRIX,
    FORCING,
    POINT_PARTIALS,
    FRAME_PARTIALS
};

struct mechanism {
    int64_t n_v;   /* numbers that w begins with: t, q, u, z, r, parameters */
    int64_t n_w;
    int64_t n_q;
    int64_t n_u;
    int64_t n_all; /* speeds, auxiliary ones included */
    int64_t n_z;
    int64_t m;
    double *w;     /* of the caller; constants are there already */
    struct groups motion; /* evaluated first */
    struct groups acting; /* when pathways and what is sensed are known: loads, potential forces, z' */
    int64_t n_gathered;
    const int64_t *gathered; /* places among w */
    int64_t n_frames;
    const int64_t *frame_parent; /* -1 for the first */
    const int64_t *rotation;     /* nine gathered numbers from here on */
    struct terms frame_terms;
    struct path_sums turning;
    struct terms point_terms;
    struct path_sums moving;
    struct terms place_terms;
    struct path_sums places_of_points;
    const int64_t *given; /* of each point: 1: its terms are velocities, 0: positions */
    int64_t n_bodies;
    const int64_t *masscenter;
    const int64_t *body_frame; /* -1: a particle */
    const int64_t *mass;       /* place among w */
    const int64_t *inertia;    /* nine places among w each */
    struct pieces forces;
    struct pieces torques;
    struct pathways pathways;
    struct sensed_vectors sensed;
    int64_t n_quantities; /* what is read off when a motion is requested as a whole */
    const int64_t *quantity_kind; /* an ``enum quantity`` */
    const int64_t *quantity_node;
    const int64_t *quantity_slot; /* where its numbers go among the slots */
    int64_t n_potential;
    const int64_t *potential; /* places among w: forces of a potential, one per speed */
    struct entries K;
    struct entries A;
    const int64_t *k0; /* places among w */
    const int64_t *b;
    const int64_t *gamma;
    const int64_t *z_dot;
    /* Of column j of the mass matrix: nodes that move with speed j and those on their paths to the origin; where it moves
       a rigid whole: the whole's point and frame, and those on their paths. */
    const int64_t *frames_begin; /* n_u + 1 */
    const int64_t *frames_of;
    const int64_t *points_begin;
    const int64_t *points_of;
    const int64_t *bodies_begin;
    const int64_t *bodies_of;
    struct particle_groups particle_groups; /* whose points and bodies are not among those of the columns */
    struct composites composites;
    struct rigid rigid;
    struct articulated articulated;
    /* From here on private. */
    double *memory;
    double *g;
    double *R;
    double *omega;
    double *alpha;
    double *position;
    double *velocity;
    double *acceleration;
    double *F;
    double *T;
    double *Q;
    double *frame_numbers; /* of the terms, in N */
    double *point_numbers;
    double *place_numbers;
    double *inertia_N;
    double *composite;
    double *group_numbers;
    double *links;
    double power; /* of all loads */
};

/* Memory, once; 0, or 1 if there is none. */
int mechanism_begin(struct mechanism *s);
void mechanism_end(struct mechanism *s);

/* Takes the state from the slots v and writes A row by row, then b. */
void mechanism_rates(struct mechanism *s, const double v[], double rates[]);

/* Takes the state from the slots v, and finds how everything moves at u' = 0. */
void mechanism_move(struct mechanism *s, const double v[]);

/* Writes q', M row by row, f and gamma; ``again``: speeds in v are others than mechanism_rates had. */
void mechanism_dynamics(struct mechanism *s, const double v[], int again, double numbers[]);

/* Writes q' and u', link after link; returns 1 where the mechanism is no tree of links, or a link has no inertia. */
int mechanism_accelerations(struct mechanism *s, const double v[], int again, double q_dot[], double u_dot[]);

/* Writes z' and the power of all loads in W; of the state that the dynamics were asked for. */
void mechanism_late(struct mechanism *s, double z_dot[], double *power);

/* Writes what is read off, with the accelerations u_dot of the first n_u speeds, into its slots among v. */
void mechanism_observe(struct mechanism *s, const double u_dot[], double v[]);

#endif
