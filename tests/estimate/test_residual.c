/* SPDX-License-Identifier: MIT */
/* The statistics of a residual, where a formula gives them. */
#include "base/complex.h"
#include "estimate/residual.h"
#include "tests/fixture/test.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS };

static pnr_vector p[J], x[1], h[1];

static void is_close(pnr_residual r, double noise, double cells, double chance)
{
    assert_true(fabs(r.noise - noise) < 1e-9);
    assert_true(fabs(r.cells - cells) < 1e-9);
    assert_true(fabs(r.chance - chance) < 1e-5);
}

/* The power of n independent cells is a gamma variable: the mean of 1/power is 1 / (n - 1). */
TEST(independent_cells)
{
    memset(p, 0, sizeof p);
    for (int i = 0; i < J; i++)
        p[i][i] = 1;
    is_close(pnr_residual_of(p, x, h, 0), J, J, 1.0 / J);
    /* a parameter takes the real part of one cell */
    x[0][3] = h[0][3] = 1;
    is_close(pnr_residual_of(p, x, h, 1), J - 0.5, J - 0.5, 1 / (J - 0.5));
}

/* Two correlated cells have the power a |z|^2 + b |w|^2, where z and w are independent, and a and b
 * are the eigenvalues. The mean of its inverse is the integral of 1 / ((1 + a t) (1 + b t)). */
TEST(correlated_cells)
{
    const double a = 1.5, b = 0.5;

    memset(p, 0, sizeof p);
    p[0][0] = p[1][1] = (a + b) / 2;
    p[0][1] = (a - b) / 2 * pnr_cis(0.7);
    p[1][0] = conj(p[0][1]);
    is_close(pnr_residual_of(p, x, h, 0), a + b, (a + b) * (a + b) / (a * a + b * b),
             1 - (a - b) / ((a + b) * log(a / b)));
}
