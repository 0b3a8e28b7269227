/* bench_robots.cpp: Pinocchio's articulated-body algorithm of a robot, for scripts/bench_robots.
 *
 * Standard input: how many joints; of each kind (floating, RX, RY, RZ, PX, PY, PZ; R and its axis), parent, rotation
 * (9, row by row) and position (3) in the parent, mass, mass centre (3), central inertia (9); then q, v, effort.
 * Damping is added as in the file: one number per speed. Arguments: how many calls, and (anything): say the
 * accelerations instead of the time.
 */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/multibody.hpp>

static double processor_ns()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static double number()
{
    double value = 0.0;
    std::cin >> value;
    return value;
}

template <typename Matrix> static Matrix read(int rows, int columns)
{
    Matrix found(rows, columns);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            found(i, j) = number();
        }
    }
    return found;
}

static pinocchio::JointModel joint(const std::string &kind)
{
    if (kind == "R") {
        const Eigen::Vector3d axis = read<Eigen::MatrixXd>(3, 1);
        return pinocchio::JointModelRevoluteUnaligned(axis.normalized());
    }
    if (kind == "floating") { return pinocchio::JointModelFreeFlyer(); }
    if (kind == "RX") { return pinocchio::JointModelRX(); }
    if (kind == "RY") { return pinocchio::JointModelRY(); }
    if (kind == "RZ") { return pinocchio::JointModelRZ(); }
    if (kind == "PX") { return pinocchio::JointModelPX(); }
    if (kind == "PY") { return pinocchio::JointModelPY(); }
    return pinocchio::JointModelPZ();
}

int main(int count, char **arguments)
{
    const int calls = count > 1 ? std::atoi(arguments[1]) : 1;
    const int n = static_cast<int>(number());
    pinocchio::Model model;
    for (int i = 0; i < n; i++) {
        std::string kind;
        std::cin >> kind;
        const pinocchio::JointModel moved = joint(kind);
        const auto parent = static_cast<pinocchio::JointIndex>(number());
        const Eigen::Matrix3d rotation = read<Eigen::MatrixXd>(3, 3);
        const Eigen::Vector3d position = read<Eigen::MatrixXd>(3, 1);
        const double mass = number();
        const Eigen::Vector3d centre = read<Eigen::MatrixXd>(3, 1);
        const Eigen::Matrix3d inertia = read<Eigen::MatrixXd>(3, 3);
        const auto own = model.addJoint(parent, moved, pinocchio::SE3(rotation, position), "j" + std::to_string(i));
        model.appendBodyToJoint(own, pinocchio::Inertia(mass, centre, inertia), pinocchio::SE3::Identity());
    }
    pinocchio::Data data(model);
    Eigen::VectorXd q = read<Eigen::MatrixXd>(model.nq, 1);
    const Eigen::VectorXd v = read<Eigen::MatrixXd>(model.nv, 1);
    const Eigen::VectorXd effort = read<Eigen::MatrixXd>(model.nv, 1);
    const Eigen::VectorXd damping = read<Eigen::MatrixXd>(model.nv, 1);
    Eigen::VectorXd torque(model.nv);
    const double begin = processor_ns();
    for (int i = 0; i < calls; i++) {
        q[model.nq - 1] += 1e-9;
        torque = effort - damping.cwiseProduct(v);
        pinocchio::aba(model, data, q, v, torque, pinocchio::Convention::LOCAL);
    }
    const double taken = processor_ns() - begin;
    if (count > 2) {
        for (int i = 0; i < model.nv; i++) {
            std::printf("%.15g ", data.ddq[i]);
        }
        return 0;
    }
    std::printf("%.3f\n", taken / calls);
    return 0;
}
