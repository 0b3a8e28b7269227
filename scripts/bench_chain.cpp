/* bench_chain.cpp: Pinocchio's articulated-body algorithm of the chain of models/chain.py, for scripts/bench_chain.
 *
 * Arguments: how many joints, the eleven numbers of the chain (offset, mass centre, mass, central inertia xx xy xz yy yz
 * zz by rows of the upper triangle: 13 numbers), gravity, how many calls, and (anything): say the first and the last
 * acceleration instead of the time.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/multibody.hpp>

static pinocchio::JointModel joint(int i)
{
    switch (i % 3) {
    case 0: return pinocchio::JointModelRZ();
    case 1: return pinocchio::JointModelRY();
    default: return pinocchio::JointModelRX();
    }
}

static pinocchio::Model chain(int n, const double p[14])
{
    pinocchio::Model model;
    Eigen::Matrix3d inertia;
    inertia << p[7], p[8], p[9], p[8], p[10], p[11], p[9], p[11], p[12];
    const pinocchio::Inertia body(p[6], Eigen::Vector3d(p[3], p[4], p[5]), inertia);
    pinocchio::JointIndex last = 0;
    for (int i = 0; i < n; i++) {
        pinocchio::SE3 place = pinocchio::SE3::Identity();
        if (i > 0) {
            place.translation() << p[0], p[1], p[2];
        }
        last = model.addJoint(last, joint(i), place, "joint" + std::to_string(i));
        model.appendBodyToJoint(last, body, pinocchio::SE3::Identity());
    }
    model.gravity.linear() << 0.0, 0.0, -p[13];
    return model;
}

int main(int count, char **arguments)
{
    if (count < 17) {
        return 2;
    }
    const int n = std::atoi(arguments[1]), calls = std::atoi(arguments[16]);
    double p[14];
    for (int i = 0; i < 14; i++) {
        p[i] = std::atof(arguments[2 + i]);
    }
    const pinocchio::Model model = chain(n, p);
    pinocchio::Data data(model);
    Eigen::VectorXd q(n), u(n), torque(n);
    for (int i = 0; i < n; i++) {
        q[i] = 0.05 + 0.1 * (i % 7);
        u[i] = 0.2 * (i % 5) - 0.3;
        torque[i] = 0.1 * (i % 3);
    }
    if (count > 17) {
        pinocchio::aba(model, data, q, u, torque, pinocchio::Convention::LOCAL);
        std::printf("%.15g %.15g\n", data.ddq[0], data.ddq[n - 1]);
        return 0;
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; i++) {
        q[0] += 1e-9;
        pinocchio::aba(model, data, q, u, torque, pinocchio::Convention::LOCAL);
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f\n", taken.count() / calls);
    return 0;
}
