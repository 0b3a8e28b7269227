/* u' of a tree of rigid links, by the articulated-body algorithm. */
#ifndef MB2FMU_ARTICULATED_H
#define MB2FMU_ARTICULATED_H

#include "bodies.h"

/* Of one link: inertia J, H, M (nine each), wrench (torque, force), its speed's unit motion (turning, shifting), the
   inertia times that, what resists the speed, what drives it, from the link before to its point, acceleration. */
enum { INERTIA = 0, WRENCH = 27, UNIT = 33, RESISTANCE = 39, MASS = 45, EFFORT = 46, ARM = 47, SPEEDING = 50, LINK = 56 };

/* Writes u' at what acts on points and frames (s->F, s->T); returns 1 if something does not resist its speed. */
int link_after_link(struct mechanism *s, double u_dot[]);

#endif
